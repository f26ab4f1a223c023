//! CREATE FUNCTION and ALTER FUNCTION.

use super::query::Depth;
use super::{Executor, Knowledge, Run, fail};
use crate::builtin::{self, Volatility};
use crate::catalog::{Definition, Function, Oid, Parameter, PrivilegeKind, SqlType, search_path_value};
use crate::effect::{ChangeAction, ChangedObject};
use pgvet_syntax::ast::{
    AlterFunction, CreateFunction, DefElem, DefValue, FunctionBody, ParameterMode, Signature, TypeName, from_pg,
};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::is_template;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `CreateFunction`.
    pub(super) fn create_function(&mut self, create: &CreateFunction) -> Run {
        let schema = self.schema_to_fill(&create.name, false)?;
        let name = create.name.name.text.clone();
        let parameters = self.parameters(create);
        check_completeness(create)?;
        let inputs: Vec<SqlType> = parameters
            .iter()
            .filter(|parameter| parameter.mode.is_input())
            .map(|parameter| parameter.sql_type)
            .collect();
        let existing = (self.catalog.functions_named(&schema, &name))
            .find(|function| function.input_types().map(|known| known.oid).eq(inputs.iter().map(|given| given.oid)))
            .cloned();
        let types_known = inputs.iter().all(|sql_type| sql_type.is_known());
        if existing.is_some() && !create.or_replace && types_known {
            return fail(
                "42723",
                format!("function \"{name}\" already exists with same argument types"),
                create.name.range(),
            );
        }
        let returns = match &create.returns {
            Some(type_name) => self.resolve_type(type_name),
            None => SqlType::UNKNOWN,
        };
        if let Some(existing) = existing.as_ref().filter(|_| types_known) {
            check_replacement(existing, create, returns)?;
            check_result_row(existing, &parameters, create.name.range())?;
        }
        let is_new = existing.is_none();
        let is_of_trigger = create.returns.as_ref().is_some_and(|returns| returns.name == "trigger");
        if !is_new || is_of_trigger {
            // Rules look for those that use it.
            self.catalog.read_mentions();
        }
        let oid = existing.map_or_else(|| self.catalog.new_oid(), |existing| existing.oid);
        let mut function = Function {
            oid,
            schema,
            name,
            procedure: create.procedure,
            aggregate: false,
            parameters,
            returns,
            returns_set: create.returns.as_ref().is_some_and(|returns| returns.setof),
            language: create.language.clone(),
            volatility: Volatility::Volatile,
            strict: false,
            security_definer: false,
            settings: Vec::new(),
            body: Arc::new(create.body.clone()),
            checked: self.checks_bodies(),
            defined_at: self.definition(create),
            transaction: self.transaction,
        };
        apply_options(&mut function, &create.options);
        if is_new {
            self.catalog.grant_defaults(oid, PrivilegeKind::Function, &function.schema);
        }
        self.note_inserts(&function);
        self.catalog.add_function(function);
        let stated = create.options.iter().map(|option| option.name.clone()).collect();
        let action = if is_new { ChangeAction::Create } else { ChangeAction::Alter };
        self.change_object(ChangedObject::Function { oid, stated }, action, create.name.range());
        self.check_body(create)
    }

    /// Where a function is defined, if that is in the file.
    fn definition(&self, create: &CreateFunction) -> Option<Definition> {
        let by = self.text_at?;
        let body = match &create.body {
            FunctionBody::Source { range, .. } => range.shifted(by),
            // Ranges in a parsed body do not shift.
            _ if by > 0 => return None,
            FunctionBody::Atomic { range, .. } => *range,
            _ => TextRange::default(),
        };
        Some(Definition {
            file: self.place.file,
            statement: self.place.range,
            name: create.name.range().shifted(by),
            body,
            search_path: self.session.settings.search_path(),
        })
    }

    fn parameters(&mut self, create: &CreateFunction) -> Vec<Parameter> {
        let parameter = |parameter: &pgvet_syntax::ast::FunctionParameter| Parameter {
            name: parameter.name.as_ref().map(|name| name.text.clone()),
            mode: parameter.mode,
            sql_type: self.resolve_type(&parameter.type_name),
            has_default: parameter.default.is_some(),
            default: parameter.default.clone().map(Arc::new),
        };
        create.parameters.iter().map(parameter).collect()
    }

    /// Whether the session checks the code of functions when it defines them; `None` if that is not known.
    ///
    /// Source: PostgreSQL 18 documentation, "`check_function_bodies`".
    fn checks_bodies(&self) -> Option<bool> {
        const SETTING: &str = "check_function_bodies";
        let settings = &self.session.settings;
        let is_off =
            |value: &str| !value.is_empty() && ["off", "false", "no", "0"].iter().any(|off| off.starts_with(value));
        let value = settings.get(SETTING).map(|setting| setting.value.to_ascii_lowercase());
        (!settings.is_doubtful(SETTING)).then(|| !value.is_some_and(|value| is_off(&value)))
    }

    /// Analyses the body of an SQL function, which locks what it names.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_proc.c`, `fmgr_sql_validator`.
    fn check_body(&mut self, create: &CreateFunction) -> Run {
        if create.language != "sql" {
            return Ok(());
        }
        match &create.body {
            FunctionBody::Atomic { statements, .. } => {
                for statement in statements {
                    self.read_statement(statement, Depth::Rewrite)?;
                }
            }
            FunctionBody::Source { text, range } if self.checks_bodies() == Some(true) && !has_polymorphic(create) => {
                let at = create.name.range();
                let statements = match from_pg::parse_sql(text) {
                    Ok(statements) => statements,
                    Err(_) if is_template(text) => {
                        self.unknown("a placeholder whose value is not known");
                        return Ok(());
                    }
                    Err(_) => return fail("42601", "the function's body does not parse", *range),
                };
                let before = self.effects.locks.len();
                for statement in &statements {
                    self.read_statement(statement, Depth::Rewrite)
                        .map_err(|failure| crate::effect::Failure { range: at, ..failure })?;
                }
                // Ranges in the body are offsets in its text, not in the file.
                self.effects.locks.explain(before, |_, cause, range| {
                    (*cause, *range) = (crate::effect::LockCause::Function, at);
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `AlterFunction`.
    pub(super) fn alter_function(&mut self, alter: &AlterFunction) -> Run {
        self.check_overload(&alter.signature)?;
        if let Some(oid) = self.function_with(&alter.signature)
            && let Some(mut function) = self.catalog.get_function(oid).map(|function| (**function).clone())
        {
            apply_options(&mut function, &alter.options);
            self.catalog.add_function(function);
        }
        Ok(())
    }

    /// Functions of this name that the migrations made must include one with the arguments, if no code is hidden that may
    /// have made another.
    fn check_overload(&mut self, signature: &Signature) -> Run {
        let name = &signature.name;
        let Some(arguments) = signature.arguments.as_ref().filter(|_| self.function_with(signature).is_none()) else {
            return Ok(());
        };
        let are_known = arguments.iter().all(|argument| self.resolve_type(argument).is_known());
        let schemas = self.session.settings.schemas_of(name);
        let mut named =
            schemas.iter().flat_map(|schema| self.catalog.functions_named(schema, &name.name.text)).peekable();
        let is_made = named.peek().is_some() && named.all(|function| function.input_types().all(SqlType::is_known));
        if self.knowledge >= Knowledge::History && self.catalog.knows_all_code() && are_known && is_made {
            return fail("42883", format!("function {name} does not exist with these argument types"), name.range());
        }
        Ok(())
    }

    /// The function that a signature names, where exactly one fits.
    pub(crate) fn function_with(&mut self, signature: &Signature) -> Option<Oid> {
        let types: Option<Vec<SqlType>> = signature
            .arguments
            .as_ref()
            .map(|arguments| arguments.iter().map(|argument: &TypeName| self.resolve_type(argument)).collect());
        let schemas = self.session.settings.schemas_of(&signature.name);
        for schema in schemas.iter() {
            let fits = |function: &&Arc<Function>| match &types {
                Some(types) => function.input_types().map(|known| known.oid).eq(types.iter().map(|given| given.oid)),
                None => true,
            };
            let mut found = self.catalog.functions_named(schema, &signature.name.name.text).filter(fits);
            if let Some(first) = found.next() {
                return found.next().is_none().then_some(first.oid);
            }
        }
        None
    }
}

/// Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `CreateFunction` and `interpret_AS_clause`.
fn check_completeness(create: &CreateFunction) -> Run {
    let range = create.name.range();
    let has_result = create.procedure
        || create.returns.is_some()
        || create.parameters.iter().any(|parameter| {
            matches!(parameter.mode, ParameterMode::Out | ParameterMode::InOut | ParameterMode::Table)
        });
    match () {
        () if create.language.is_empty() => fail("42P13", "no language specified", range),
        () if !has_result => fail("42P13", "function result type must be specified", range),
        () => Ok(()),
    }
}

/// The body of a function over polymorphic types is not analysed before it is called.
fn has_polymorphic(create: &CreateFunction) -> bool {
    let is_polymorphic = |name: &str| builtin::type_by_name(name).is_some_and(|row| builtin::is_polymorphic(row.oid));
    let types = create.parameters.iter().map(|parameter| &parameter.type_name).chain(&create.returns);
    types.into_iter().any(|type_name| is_polymorphic(&type_name.name))
}

/// Source: PostgreSQL 18, `src/backend/catalog/pg_proc.c`, `ProcedureCreate`.
fn check_replacement(existing: &Function, create: &CreateFunction, returns: SqlType) -> Run {
    let range = create.name.range();
    if existing.procedure != create.procedure {
        return fail("42809", format!("cannot change routine kind of \"{}\"", existing.name), range);
    }
    let both_known = existing.returns.is_known() && returns.is_known();
    let returns_set = create.returns.as_ref().is_some_and(|returns| returns.setof);
    if both_known && (existing.returns.oid != returns.oid || existing.returns_set != returns_set) {
        return fail("42P13", format!("cannot change return type of existing function \"{}\"", existing.name), range);
    }
    let old = existing.parameters.iter().filter(|parameter| parameter.mode.is_input());
    let new = create.parameters.iter().filter(|parameter| parameter.mode.is_input());
    for (old, new) in old.zip(new) {
        let renamed = old.name.as_ref().is_some_and(|old| new.name.as_ref().is_none_or(|new| new.text != *old));
        if renamed && old.mode != ParameterMode::Table {
            let name = old.name.as_deref().unwrap_or_default();
            return fail("42P13", format!("cannot change name of input parameter \"{name}\""), range);
        }
        if old.has_default && new.default.is_none() {
            return fail("42P13", "cannot remove parameter defaults from existing function", range);
        }
    }
    Ok(())
}

/// The columns of the row that several output parameters make must stay the same.
///
/// Source: PostgreSQL 18, `src/backend/catalog/pg_proc.c`, `ProcedureCreate`.
fn check_result_row(existing: &Function, parameters: &[Parameter], range: TextRange) -> Run {
    let [old, new] = [&existing.parameters, parameters].map(result_row);
    let are_known = [&old, &new].into_iter().flatten().all(|(_, sql_type)| sql_type.is_known());
    let columns = |row: &[(Option<&SmolStr>, SqlType)]| -> Vec<_> {
        row.iter().map(|(name, sql_type)| (name.cloned(), sql_type.oid)).collect()
    };
    if are_known && columns(&old) != columns(&new) {
        return fail("42P13", format!("cannot change return type of existing function \"{}\"", existing.name), range);
    }
    Ok(())
}

/// The columns of the row that a function returns; none if it has only one result.
fn result_row(parameters: &[Parameter]) -> Vec<(Option<&SmolStr>, SqlType)> {
    let is_output =
        |one: &&Parameter| matches!(one.mode, ParameterMode::Out | ParameterMode::InOut | ParameterMode::Table);
    let row: Vec<_> = parameters.iter().filter(is_output).map(|one| (one.name.as_ref(), one.sql_type)).collect();
    if row.len() > 1 { row } else { Vec::new() }
}

fn apply_options(function: &mut Function, options: &[DefElem]) {
    for option in options {
        match option.name.as_str() {
            "volatility" => {
                function.volatility = match super::view::option_text(option).1.as_str() {
                    "immutable" => Volatility::Immutable,
                    "stable" => Volatility::Stable,
                    _ => Volatility::Volatile,
                }
            }
            "strict" => function.strict = option.as_bool() == Some(true),
            "security" => function.security_definer = option.as_bool() == Some(true),
            "set" => set_option(function, &option.value),
            _ => {}
        }
    }
}

/// SET of a function; without values it is RESET.
fn set_option(function: &mut Function, value: &DefValue) {
    let DefValue::Names(words) = value else { return };
    match &words[..] {
        [] => {}
        [name] if name.is_empty() || name == "all" => function.settings.clear(),
        [name, values @ ..] => {
            function.settings.retain(|(other, _)| other != name);
            if !values.is_empty() {
                let value = if name == "search_path" { search_path_value(values) } else { values.join(", ").into() };
                function.settings.push((name.clone(), value));
            }
        }
    }
}
