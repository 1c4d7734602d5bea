/**
 * Names of database spans: operation and table, by OpenTelemetry's conventions. The library gives all of them the same
 * name, and its statement text may contain literals.
 */
import type * as Tracer from "effect/Tracer"

/** The library's name for all of them. */
export const libraryName = "sql.execute"

/** Maximum characters of a statement that are parsed. */
const maxLength = 8_000

const literals = /'(?:[^']|'')*'|(?<![\w$])\d+(?:\.\d+)?\b/gu
const verb = /^(?:with|select|insert|update|delete|merge|create|alter|drop|begin|commit|set|listen|notify)\b/u
const inner = /\b(select|insert|update|delete|merge)\b/u

/** The text outside of parentheses: the main statement after a `with`. */
const mainStatement = (text: string): string => {
  let depth = 0
  let kept = ""
  for (const part of text.split(/([()])/u)) {
    if (part === "(") depth += 1
    else if (part === ")") depth -= 1
    else if (depth === 0) kept += `${part} `
  }
  return kept
}

/** A name followed by a parenthesis is a function, except after `into`. */
const tables =
  /\b(?:into\s+([a-z_][\w.]*)|(?:from|update|join)\s+(?:only\s+)?([a-z_][\w.]*)(?![\w.]|\s*\())/gu

const tableIn = (text: string, others: ReadonlySet<string>): string | undefined =>
  Array.from(text.matchAll(tables), ([, into, from]) => into ?? from ?? "").find((name) => !others.has(name))

/** Keywords that may stand in the place of a table. */
const words = ["lateral", "select", "set", "skip"]

const summaryOf = (statement: string) => {
  const text = statement.slice(0, maxLength).replace(literals, "?").trim().replace(/\s+/gu, " ")
  const lower = text.toLowerCase()
  const begins = verb.exec(lower)?.[0]
  if (begins === undefined) return { operation: "STATEMENT", table: undefined, text }
  const named =
    begins === "with"
      ? Array.from(lower.matchAll(/(?<!\w)([a-z_]\w*) as (?:(?:not )?materialized )?\(/gu))
      : []
  const others = new Set([...words, ...named.map(([, name = ""]) => name)])
  const body = begins === "with" ? mainStatement(lower) : lower
  const operation = begins === "with" ? (inner.exec(body)?.[1] ?? "select") : begins
  const table = tableIn(body, others) ?? tableIn(lower, others)
  return { operation: operation.toUpperCase(), table, text }
}

/** `span`, which gets its own name and attributes once the library sets its statement. */
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
