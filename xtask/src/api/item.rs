//! How an item is written down: its declaration without documentation, bodies and private parts.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Attribute, Field, Fields, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility, parse_quote};

/// The name of an item that declares one.
pub(super) fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The same of an item that everybody who reaches its module may use.
pub(super) fn public_name(item: &Item) -> Option<String> {
    let visibility = match item {
        Item::Const(it) => &it.vis,
        Item::Enum(it) => &it.vis,
        Item::Fn(it) => &it.vis,
        Item::Static(it) => &it.vis,
        Item::Struct(it) => &it.vis,
        Item::Trait(it) => &it.vis,
        Item::Type(it) => &it.vis,
        _ => return None,
    };
    if matches!(visibility, Visibility::Public(_)) { name(item) } else { None }
}

/// Whether an item calls a macro that declares a name: one that it is given, or that stands in the macro itself.
pub(super) fn makes(item: &Item, beside: &[Item], name: &str) -> bool {
    let Item::Macro(call) = item else { return false };
    if call.ident.is_some() {
        return false;
    }
    let rules = beside.iter().find_map(|item| match item {
        Item::Macro(rules) if rules.ident.as_ref().is_some_and(|ident| call.mac.path.is_ident(ident)) => {
            Some(rules)
        }
        _ => None,
    });
    [Some(call), rules].into_iter().flatten().any(|it| mentions(it.mac.tokens.clone(), name))
}

/// Whether a declaration of a name is among tokens.
fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}

/// An item's declaration.
pub(super) fn written(item: &Item) -> Result<String, String> {
    let mut item = item.clone();
    match &mut item {
        Item::Const(it) => keep(&mut it.attrs),
        Item::Enum(it) => {
            keep(&mut it.attrs);
            for variant in &mut it.variants {
                keep(&mut variant.attrs);
                fields(&mut variant.fields, &Visibility::Inherited);
            }
        }
        Item::Fn(it) => {
            keep(&mut it.attrs);
            it.block = parse_quote!({});
        }
        Item::Static(it) => {
            keep(&mut it.attrs);
            it.expr = parse_quote!(_);
        }
        Item::Struct(it) => {
            keep(&mut it.attrs);
            fields(&mut it.fields, &parse_quote!(pub));
        }
        Item::Trait(it) => {
            keep(&mut it.attrs);
            for member in &mut it.items {
                if let TraitItem::Fn(method) = member {
                    keep(&mut method.attrs);
                    if method.default.is_some() {
                        method.default = Some(parse_quote!({}));
                    }
                }
                match member {
                    TraitItem::Const(it) => keep(&mut it.attrs),
                    TraitItem::Type(it) => keep(&mut it.attrs),
                    _ => {}
                }
            }
        }
        Item::Type(it) => keep(&mut it.attrs),
        Item::Macro(it) => {
            keep(&mut it.attrs);
            it.mac.tokens = plain(it.mac.tokens.clone());
        }
        _ => {}
    }
    print(item)
}

/// What implementations add to a type's surface: the public members of its own, and the fact of a trait's.
pub(super) fn implementations<'i>(
    all: impl Iterator<Item = &'i ItemImpl>,
    is_private: impl Fn(&str) -> bool,
) -> Result<String, String> {
    let mut own: BTreeMap<String, ItemImpl> = BTreeMap::new();
    let mut traits = BTreeSet::new();
    for it in all {
        let mut it = it.clone();
        keep(&mut it.attrs);
        let members = std::mem::take(&mut it.items).into_iter();
        match &it.trait_ {
            Some((_, path, _)) => {
                let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
                if !is_private(&name) {
                    it.items = members.filter(|it| matches!(it, ImplItem::Type(_))).map(bare).collect();
                    traits.insert(print(Item::Impl(it))?);
                }
            }
            // What several blocks say of the same type is one block.
            None => {
                let block = own.entry(print(Item::Impl(it.clone()))?).or_insert(it);
                block.items.extend(members.filter(is_public).map(bare));
            }
        }
    }
    let mut out = String::new();
    for mut block in own.into_values().filter(|block| !block.items.is_empty()) {
        block.items.sort_by_key(member_name);
        out.push_str(&print(Item::Impl(block))?);
    }
    out.extend(traits);
    Ok(out)
}

fn is_public(member: &ImplItem) -> bool {
    match member {
        ImplItem::Const(it) => matches!(it.vis, Visibility::Public(_)),
        ImplItem::Fn(it) => matches!(it.vis, Visibility::Public(_)),
        _ => false,
    }
}

fn member_name(member: &ImplItem) -> String {
    match member {
        ImplItem::Const(it) => it.ident.to_string(),
        ImplItem::Fn(it) => it.sig.ident.to_string(),
        _ => String::new(),
    }
}

/// A member without documentation and body.
fn bare(mut member: ImplItem) -> ImplItem {
    match &mut member {
        ImplItem::Const(it) => keep(&mut it.attrs),
        ImplItem::Fn(it) => {
            keep(&mut it.attrs);
            it.block = parse_quote!({});
        }
        ImplItem::Type(it) => keep(&mut it.attrs),
        _ => {}
    }
    member
}

/// Leaves the attributes that a user of an item can tell.
fn keep(attributes: &mut Vec<Attribute>) {
    const KEPT: [&str; 5] = ["derive", "must_use", "non_exhaustive", "cfg", "deprecated"];
    attributes.retain(|attribute| KEPT.iter().any(|kept| attribute.path().is_ident(kept)));
    for attribute in attributes {
        // Its reason is documentation.
        if attribute.path().is_ident("must_use") {
            *attribute = parse_quote!(#[must_use]);
        }
    }
}

/// Leaves the fields that have this visibility; the others are there, without name or type.
fn fields(fields: &mut Fields, shown: &Visibility) {
    let is_shown = |field: &Field| std::mem::discriminant(&field.vis) == std::mem::discriminant(shown);
    match fields {
        Fields::Named(named) => {
            let hides = named.named.iter().any(|field| !is_shown(field));
            named.named = std::mem::take(&mut named.named).into_iter().filter(is_shown).collect();
            if hides {
                named.named.push(parse_quote!(_private: _));
            }
        }
        Fields::Unnamed(unnamed) => {
            for field in &mut unnamed.unnamed {
                if !is_shown(field) {
                    field.vis = Visibility::Inherited;
                    field.ty = Type::Infer(parse_quote!(_));
                }
            }
        }
        Fields::Unit => {}
    }
    for field in fields {
        keep(&mut field.attrs);
    }
}

/// Tokens without documentation.
fn plain(tokens: TokenStream) -> TokenStream {
    let mut out = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match (&token, tokens.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(group)))
                if hash.as_char() == '#'
                    && group.delimiter() == Delimiter::Bracket
                    && group.stream().into_iter().next().is_some_and(|first| first.to_string() == "doc") =>
            {
                tokens.next();
            }
            (TokenTree::Group(group), _) => {
                out.push(TokenTree::Group(proc_macro2::Group::new(group.delimiter(), plain(group.stream()))));
            }
            _ => out.push(token),
        }
    }
    out.into_iter().collect()
}

fn print(item: Item) -> Result<String, String> {
    Ok(prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] }))
}
