/**
 * Names of database spans: operation and table, by OpenTelemetry's conventions. The library gives all of them the same
 * name, and its statement text may contain literals.
 */
import type * as Tracer from "effect/Tracer"

/** The name that the library gives to every database span. */
export const librarySpanName = "sql.execute"

/** Maximum characters of a statement that are parsed. */
const maxLength = 8_000

const literals = /'(?:[^']|'')*'|(?<![\w$])\d+(?:\.\d+)?\b/gu
const verb = /^(?:with|select|insert|update|delete|merge|create|alter|drop|begin|commit|set|listen|notify)\b/u
const mainVerb = /\b(select|insert|update|delete|merge)\b/u

/** The text outside of parentheses: the main statement after a `with`. */
const mainStatement = (text: string): string => {
  let depth = 0
  let outside = ""
  for (const part of text.split(/([()])/u)) {
    if (part === "(") depth += 1
    else if (part === ")") depth -= 1
    else if (depth === 0) outside += `${part} `
  }
  return outside
}

/** A name followed by a parenthesis is a function, except after `into`. */
const tableReference =
  /\b(?:into\s+([a-z_][\w.]*)|(?:from|update|join)\s+(?:only\s+)?([a-z_][\w.]*)(?![\w.]|\s*\())/gu

const firstTable = (text: string, excluded: ReadonlySet<string>): string | undefined =>
  Array.from(text.matchAll(tableReference), ([, into, from]) => into ?? from ?? "").find(
    (name) => !excluded.has(name)
  )

/** Keywords that may follow in the place of a table. */
const keywords = ["lateral", "select", "set", "skip"]

const summaryOf = (statement: string) => {
  const text = statement.slice(0, maxLength).replace(literals, "?").trim().replace(/\s+/gu, " ")
  const lower = text.toLowerCase()
  const firstVerb = verb.exec(lower)?.[0]
  if (firstVerb === undefined) return { operation: "STATEMENT", table: undefined, text }
  const commonTables =
    firstVerb === "with"
      ? Array.from(lower.matchAll(/(?<!\w)([a-z_]\w*) as (?:(?:not )?materialized )?\(/gu))
      : []
  const excluded = new Set([...keywords, ...commonTables.map(([, name = ""]) => name)])
  const body = firstVerb === "with" ? mainStatement(lower) : lower
  const operation = firstVerb === "with" ? (mainVerb.exec(body)?.[1] ?? "select") : firstVerb
  const table = firstTable(body, excluded) ?? firstTable(lower, excluded)
  return { operation: operation.toUpperCase(), table, text }
}

/** `span`, which gets its name and attributes when the library sets its statement. */
export const withStatementName = (span: Tracer.Span): Tracer.Span => {
  const { attribute } = span
  const set = (key: string, value: unknown) => Reflect.apply(attribute, span, [key, value])
  return Object.assign(span, {
    attribute: (key: string, value: unknown) => {
      // The library's value is always `execute`.
      if (key === "db.operation.name") return
      if (key !== "db.query.text" || typeof value !== "string") return set(key, value)
      const { operation, table, text } = summaryOf(value)
      Object.assign(span, { name: table === undefined ? operation : `${operation} ${table}` })
      set("db.operation.name", operation)
      if (table !== undefined) set("db.collection.name", table)
      set("db.query.text", text)
    }
  })
}
