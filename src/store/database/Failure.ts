/**
 * Why the database failed, in words for operators: the server's message, its SQLSTATE, and a remedy.
 *
 * Only the server's message is kept, and of some messages only the part around quoted values. Detail, hint, context and
 * statement can contain row values. They are dropped here, before anything can log them.
 */
import { SqlError } from "@effect/sql/SqlError"
import type * as Pg from "pg"
import { isError } from "../../domain/ThrownErrors.ts"

/**
 * SQLSTATEs whose messages quote only names of tables, roles, settings and files. All others (invalid data, texts that
 * cannot be parsed, errors raised by functions) may quote input of a caller.
 */
const quotesNames = /^(?:08|0A|23|25|28|2B|3D|3F|40|42(?!601)|53|54|55|57|58)/u

const quotedIdentifier = /"(?:[^"]|"")*"/gu

const textOf = (error: Error, key: string): string | undefined => {
  const value: unknown = Reflect.get(error, key)
  return typeof value === "string" ? value : undefined
}

const isSqlState = (code: string | undefined): code is string => /^[0-9A-Z]{5}$/u.test(code ?? "")

/** The part of a driver's error that may be returned and logged; `code` is the SQLSTATE, or the system's error code. */
export class DatabaseFailure extends Error {
  override readonly name = "DatabaseFailure"
  readonly code: string | undefined
  readonly constraint: string | undefined

  constructor(error: Error) {
    const code = textOf(error, "code")
    const fromServer = isSqlState(code) && !quotesNames.test(code)
    super(fromServer ? error.message.replaceAll(quotedIdentifier, '"…"') : error.message)
    this.code = code
    this.constraint = textOf(error, "constraint")
  }
}

const nameOf = (role: string | null) =>
  role === null
    ? "the user of DATABASE_URL"
    : /^[a-z_][a-z0-9_]*$/u.test(role)
      ? role
      : `"${role.replaceAll('"', '""')}"`

type Remedy = readonly [
  code: RegExp,
  message: RegExp,
  remedy: (role: string, named: string, kind: string) => string
]

/** The first entry whose SQLSTATE and message match is used. `message` may capture a name, and its kind. */
const remedies: ReadonlyArray<Remedy> = [
  [
    /^42501$/u,
    /for schema "?(?<named>[^"]+)/u,
    (role, named) => `Let its owner run GRANT USAGE, CREATE ON SCHEMA ${named} TO ${role}`
  ],
  [
    /^42501$/u,
    /for database "?(?<named>[^"]+)/u,
    (role, named) => `Let its owner run GRANT CONNECT, CREATE ON DATABASE ${named} TO ${role}`
  ],
  [
    /^42501$/u,
    /create extension "?(?<named>[^"]+)/u,
    (_, named) => `Let a superuser run CREATE EXTENSION ${named} in this database`
  ],
  [
    /^42501$/u,
    /for (?<kind>table|view|relation) "?(?<named>[^"]+)/u,
    (role, named) =>
      `It belongs to another role: let that one run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … TO ${role}, ` +
      `or a superuser ALTER TABLE ${named} OWNER TO ${role}`
  ],
  [
    /^42501$/u,
    /for sequence "?(?<named>[^"]+)/u,
    (role) => `Let its owner run GRANT USAGE ON ALL SEQUENCES IN SCHEMA … TO ${role}`
  ],
  [
    /^42501$/u,
    /must be owner of (?<kind>\w+) "?(?<named>[^"]+)/u,
    (role, named, kind) =>
      `Another role made it: let a superuser run ALTER ${kind === "relation" ? "TABLE" : kind.toUpperCase()} ${named} OWNER TO ${role}, ` +
      `or for all that role has REASSIGN OWNED BY its owner TO ${role}`
  ],
  [/^42501$/u, /^/u, (role) => `Let a superuser or the owner grant it to ${role}`],
  [
    /^3F000$/u,
    /^/u,
    (role) => `The role sees no schema: let the owner run GRANT USAGE, CREATE ON SCHEMA public TO ${role}`
  ],
  [
    /^(?:42704|58P01|0A000)$/u,
    /(?:type "(?:half)?vec|"?\$libdir\/vector|extension)/u,
    () =>
      "An extension is missing or out of sight: install its package on the server, let a superuser run CREATE EXTENSION in this " +
      "database, and put its schema into the role's search_path"
  ],
  [/^28P01$/u, /^/u, () => "Check user and password in DATABASE_URL"],
  [
    /^28000$/u,
    /^/u,
    () =>
      "Check the user in DATABASE_URL, and whether the server's pg_hba.conf lets it in from here, with TLS or without"
  ],
  [/^3D000$/u, /^/u, () => "Make it (CREATE DATABASE), or correct the name in DATABASE_URL"],
  [
    /^42(?:P01|703|883)$/u,
    /^/u,
    () => "The tables are not those of this version, or not in the role's search_path: run spoke migrate"
  ],
  [
    /^53300$/u,
    /^/u,
    () =>
      "Lower SPOKE_DATABASE_POOL, run fewer processes, raise max_connections there, or put a pooler before it"
  ],
  [/^25006$/u, /^/u, () => "The server takes no writes, as a standby: let DATABASE_URL name the primary"],
  [/^53100$/u, /^/u, () => "Make room on the database's disk"],
  [
    /^53200$/u,
    /^/u,
    () => "The database has no memory left: lower its settings or the number of connections"
  ],
  [
    /^57014$/u,
    /timeout/u,
    () =>
      "The server took too long: is it overloaded, does another session hold a lock, is it due for ANALYZE?"
  ],
  [/^55P03$/u, /^/u, () => "Another session holds a lock: see pg_stat_activity"],
  [/^57P0[123]$/u, /^/u, () => "The server stops or starts: try again when it is up"]
]

const remedyOf = (code: string | undefined, message: string, role: string | null): string | null => {
  for (const [codes, words, remedy] of remedies) {
    const match = codes.test(code ?? "") ? words.exec(message) : null
    if (match !== null)
      return remedy(nameOf(role), match.groups?.["named"] ?? "", match.groups?.["kind"] ?? "")
  }
  return null
}

/** One line: the server's message, its SQLSTATE, and a remedy if one is known. `role` is the role of the session. */
const describe = ({ code, message }: DatabaseFailure, role: string | null): string => {
  // If a host has several addresses, the error has an empty message.
  const words = message === "" ? "There is no connection to the database" : message
  const description =
    code === undefined ? words : `${words} (${isSqlState(code) ? `SQLSTATE ${code}` : code})`
  const remedy = remedyOf(code, message, role)
  return remedy === null ? description : `${description}. ${remedy}`
}

/** The role of the session. The driver knows it, but its types do not declare it. */
const roleOf = (client: Pg.ClientBase | null): string | null => {
  const user: unknown = client === null ? null : Reflect.get(client, "user")
  return typeof user === "string" ? user : null
}

/** The error of a statement, or of a connection when there is no `client`. */
export const sqlErrorOf = (error: Error, client: Pg.ClientBase | null = null): SqlError => {
  const cause = new DatabaseFailure(error)
  return new SqlError({ cause, message: describe(cause, roleOf(client)) })
}

/** The SQLSTATE in an error or its causes; null if there is none. */
export const sqlStateOf = (thrown: unknown, depth = 4): string | null => {
  if (!isError(thrown) || depth === 0) return null
  return thrown instanceof DatabaseFailure && isSqlState(thrown.code)
    ? thrown.code
    : sqlStateOf(thrown.cause, depth - 1)
}

/** True for a lock time-out and for a deadlock. The statement may succeed when it is repeated. */
export const isLockConflict = (thrown: unknown): boolean =>
  ["55P03", "40P01"].includes(sqlStateOf(thrown) ?? "")

/** {@link isLockConflict}, or a concurrent change of the same row of a catalogue (`tuple concurrently updated`). */
export const isCatalogueConflict = (thrown: unknown): boolean =>
  isLockConflict(thrown) || sqlStateOf(thrown) === "XX000"

/**
 * True for a statement that failed because the unique index `index` already has the value. On a sharded server the
 * index of a shard ends in the shard's number.
 */
export const violates =
  (index: string) =>
  (error: unknown): error is SqlError =>
    error instanceof SqlError &&
    error.cause instanceof DatabaseFailure &&
    error.cause.code === "23505" &&
    error.cause.constraint?.replace(/_\d+$/u, "") === index
