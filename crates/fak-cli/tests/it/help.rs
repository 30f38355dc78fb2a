//! The help texts, pinned: a change of one is a change of the product.

use expect_test::expect_file;

use crate::fak;

#[test]
fn help_of_every_verb() {
    for (args, file) in [
        (&[][..], expect_file!["help/overview.txt"]),
        (&["--help"], expect_file!["help/fak.txt"]),
        (&["policy", "--help"], expect_file!["help/policy.txt"]),
        (&["lanes", "--help"], expect_file!["help/lanes.txt"]),
        (&["topo", "--help"], expect_file!["help/topo.txt"]),
        (&["audit", "--help"], expect_file!["help/audit.txt"]),
        (&["task", "--help"], expect_file!["help/task.txt"]),
        (&["journal", "--help"], expect_file!["help/journal.txt"]),
        (&["run", "--help"], expect_file!["help/run.txt"]),
        (&["demo", "--help"], expect_file!["help/demo.txt"]),
        (&["explain", "--help"], expect_file!["help/explain.txt"]),
        (&["lanes", "lint", "--help"], expect_file!["help/lanes-lint.txt"]),
        (&["lanes", "check", "--help"], expect_file!["help/lanes-check.txt"]),
        (&["topo", "render", "--help"], expect_file!["help/topo-render.txt"]),
        (&["policy", "lint", "--help"], expect_file!["help/policy-lint.txt"]),
        (&["policy", "test", "--help"], expect_file!["help/policy-test.txt"]),
        (&["task", "new", "--help"], expect_file!["help/task-new.txt"]),
        (&["task", "apply", "--help"], expect_file!["help/task-apply.txt"]),
        (&["task", "view", "--help"], expect_file!["help/task-view.txt"]),
        (&["task", "log", "--help"], expect_file!["help/task-log.txt"]),
        (&["journal", "load", "--help"], expect_file!["help/journal-load.txt"]),
        (&["audit", "verify", "--help"], expect_file!["help/audit-verify.txt"]),
        (&["audit", "show", "--help"], expect_file!["help/audit-show.txt"]),
        (&["journal", "verify", "--help"], expect_file!["help/journal-verify.txt"]),
        (&["journal", "show", "--help"], expect_file!["help/journal-show.txt"]),
        (&["completions", "--help"], expect_file!["help/completions.txt"]),
    ] {
        let ran = fak(args);
        assert_eq!(ran.status, 0, "{args:?}");
        // operations.md: each verb's help has an example and its exit status.
        if args != [""; 0] {
            assert!(ran.out.contains("Exit status:"), "{args:?}");
            assert!(args == ["--help"] || ran.out.contains("Example"), "{args:?}");
        }
        file.assert_eq(&ran.out);
    }
}
