//! Constructors and short names for the generated tables, which would be several times as long without them.

#![expect(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "one argument per column")]

pub(super) use super::types::{
    AccessMethod, BuiltinCast, BuiltinFunction, BuiltinOperator, BuiltinType, BuiltinTypeKind as K, CastContext as X,
    CastMethod as M, Extension, FunctionKind as F, OperatorClass, SystemRelation, SystemRelationKind as R,
    TypeCategory as C,
};
use super::types::{
    ExtensionCast, ExtensionFunction, ExtensionOperator, ExtensionOperatorClass, ExtensionType, Majors,
};
pub(super) use crate::builtin::Volatility as V;

pub(super) const fn data_type(
    oid: u32,
    schema: &'static str,
    name: &'static str,
    kind: K,
    category: C,
    preferred: bool,
    element: u32,
    array: u32,
    length: i16,
    base: u32,
    base_typmod: i32,
    constrained: bool,
    input: V,
    output: V,
    collation: &'static str,
    since: u8,
    until: u8,
) -> BuiltinType {
    BuiltinType {
        oid,
        schema,
        name,
        kind,
        category,
        preferred,
        element,
        array,
        length,
        base,
        base_typmod,
        constrained,
        input,
        output,
        collation,
        majors: Majors { since, until },
    }
}

pub(super) const fn cast(
    source: u32,
    target: u32,
    context: X,
    method: M,
    volatility: V,
    function: &'static str,
    since: u8,
    until: u8,
) -> BuiltinCast {
    BuiltinCast { source, target, context, method, volatility, function, majors: Majors { since, until } }
}

pub(super) const fn function(
    name: &'static str,
    arguments: &'static [u32],
    defaults: u8,
    variadic: u32,
    returns: u32,
    returns_set: bool,
    volatility: V,
    strict: bool,
    kind: F,
    argument_names: &'static [&'static str],
    since: u8,
    until: u8,
) -> BuiltinFunction {
    BuiltinFunction {
        name,
        arguments,
        defaults,
        variadic,
        returns,
        returns_set,
        volatility,
        strict,
        kind,
        argument_names,
        majors: Majors { since, until },
    }
}

pub(super) const fn operator(
    name: &'static str,
    left: u32,
    right: u32,
    result: u32,
    volatility: V,
    strict: bool,
    function: &'static str,
    since: u8,
    until: u8,
) -> BuiltinOperator {
    BuiltinOperator { name, left, right, result, volatility, strict, function, majors: Majors { since, until } }
}

pub(super) const fn operator_class(
    method: &'static str,
    name: &'static str,
    input: u32,
    default: bool,
    family: &'static str,
    since: u8,
    until: u8,
) -> OperatorClass {
    OperatorClass { method, name, input, default, family, majors: Majors { since, until } }
}

pub(super) const fn access_method(
    name: &'static str,
    unique: bool,
    exclude: bool,
    multicolumn: bool,
    order: bool,
    include: bool,
    since: u8,
    until: u8,
) -> AccessMethod {
    AccessMethod { name, unique, exclude, multicolumn, order, include, majors: Majors { since, until } }
}

pub(super) const fn relation(
    schema: &'static str,
    name: &'static str,
    kind: R,
    since: u8,
    until: u8,
) -> SystemRelation {
    SystemRelation { schema, name, kind, majors: Majors { since, until } }
}

pub(super) const fn extension(
    name: &'static str,
    requires: &'static [&'static str],
    types: &'static [ExtensionType],
    functions: &'static [ExtensionFunction],
    operators: &'static [ExtensionOperator],
    casts: &'static [ExtensionCast],
    operator_classes: &'static [ExtensionOperatorClass],
    relations: &'static [&'static str],
) -> Extension {
    Extension { name, requires, types, functions, operators, casts, operator_classes, relations }
}

pub(super) const fn extension_type(
    name: &'static str,
    kind: K,
    category: C,
    preferred: bool,
    input: V,
    output: V,
) -> ExtensionType {
    ExtensionType { name, kind, category, preferred, input, output }
}

pub(super) const fn extension_function(
    name: &'static str,
    arguments: &'static [&'static str],
    defaults: u8,
    variadic: bool,
    returns: &'static str,
    returns_set: bool,
    volatility: V,
    strict: bool,
    kind: F,
) -> ExtensionFunction {
    ExtensionFunction { name, arguments, defaults, variadic, returns, returns_set, volatility, strict, kind }
}

pub(super) const fn extension_operator(
    name: &'static str,
    left: &'static str,
    right: &'static str,
    result: &'static str,
    volatility: V,
    strict: bool,
) -> ExtensionOperator {
    ExtensionOperator { name, left, right, result, volatility, strict }
}

pub(super) const fn extension_cast(
    source: &'static str,
    target: &'static str,
    context: X,
    method: M,
    volatility: V,
) -> ExtensionCast {
    ExtensionCast { source, target, context, method, volatility }
}

pub(super) const fn extension_operator_class(
    method: &'static str,
    name: &'static str,
    input: &'static str,
    default: bool,
    family: &'static str,
) -> ExtensionOperatorClass {
    ExtensionOperatorClass { method, name, input, default, family }
}
