/** Requests of SCIM 2.0 provisioning: people and groups, as Entra ID, Okta and others write them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { typeId } from "../Ids.ts"
import * as Json from "../Json.ts"
import { isList } from "../JsonValue.ts"
import type { JsonValue } from "../Text.ts"

/** An error in SCIM's own shape. `detail` says what to fix, without the caller's input. */
export class ScimError extends Schema.TaggedError<ScimError>()("ScimError", {
  status: Schema.Literal(400, 401, 404, 409, 429),
  scimType: Schema.NullOr(
    Schema.Literal(
      "invalidFilter",
      "uniqueness",
      "mutability",
      "invalidSyntax",
      "invalidPath",
      "noTarget",
      "invalidValue"
    )
  ),
  detail: Schema.String
}) {}

export const newScimGroupId = Effect.map(Clock.currentTimeMillis, (now) => typeId("grp", now))

type Read<A> = Either.Either<A, ScimError>
type Body = { readonly [name: string]: JsonValue }
type Value = JsonValue | undefined

const invalid = (scimType: ScimError["scimType"], detail: string) =>
  Either.left(new ScimError({ status: 400, scimType, detail }))

const maxNameCharacters = 320
/** Maximum number of operations of one request. */
const maxOperations = 1_000
/** Maximum number of members of a group. */
export const maxMembers = 10_000

const isBody = (value: Value): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Attribute names are compared without case. */
const attribute = (body: Body, name: string): Value =>
  Object.entries(body).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1]

/** Some providers write a single value as a list of one. */
const single = (value: Value): Value =>
  isList(value) && value.length === 1 && isBody(value[0]) ? attribute(value[0], "value") : value

const textOf = (value: Value, name: string): Read<string> => {
  const given = single(value)
  const text = typeof given === "string" ? given.trim() : ""
  return text !== "" && text.length <= maxNameCharacters
    ? Either.right(text)
    : invalid("invalidValue", `Expected ${name} as a text of 1 to ${maxNameCharacters} characters.`)
}

/** Entra ID writes booleans as text. */
const booleanOf = (value: Value): Read<boolean> => {
  const given = single(value)
  const text = typeof given === "string" ? given.toLowerCase() : given
  if (text === true || text === "true") return Either.right(true)
  if (text === false || text === "false") return Either.right(false)
  return invalid("invalidValue", "Expected active as a boolean.")
}

const externalIdOf = (value: Value): Read<{ readonly externalId: string | null }> =>
  value === null || value === ""
    ? Either.right({ externalId: null })
    : Either.map(textOf(value, "externalId"), (externalId) => ({ externalId }))

/** Omitted attributes stay as they are. Attributes that Spoke does not keep, such as names and phones, are ignored. */
export interface PersonChanges {
  readonly userName?: string
  readonly externalId?: string | null
  readonly active?: boolean
}

/** Readers of the attributes of a person that are stored, by their names in lower case. */
const personAttributes = new Map<string, (value: Value) => Read<PersonChanges>>([
  [
    "username",
    (value) => Either.map(textOf(value, "userName"), (userName) => ({ userName: userName.toLowerCase() }))
  ],
  ["externalid", externalIdOf],
  ["active", (value) => Either.map(booleanOf(value), (active) => ({ active }))]
])

const personChanges = (all: ReadonlyArray<readonly [string, Value]>): Read<PersonChanges> =>
  Either.map(
    // Other attributes are skipped here, so that a body of many of them costs little.
    Either.all(all.flatMap(([name, value]) => personAttributes.get(name.toLowerCase())?.(value) ?? [])),
    (changes) => changes.reduce<PersonChanges>((made, change) => Object.assign(made, change), {})
  )

/** Reads a whole user, from POST and PUT. */
export const readPerson = (body: JsonValue): Read<PersonChanges & { readonly userName: string }> => {
  if (!isBody(body)) return invalid("invalidSyntax", "Expected a user.")
  return Either.flatMap(personChanges(Object.entries(body)), ({ userName, ...changes }) =>
    Either.map(textOf(userName, "userName"), (name) => ({ ...changes, userName: name }))
  )
}

interface Operation {
  readonly op: "add" | "replace" | "remove"
  readonly path: string | null
  readonly value: Value
}

const kinds = ["add", "replace", "remove"] as const

const coreSchema = /^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group)(?::|$)/i
/** The attribute name in a path; empty for the core schema itself, whose value is an object of attributes. */
const attributeNameIn = (path: string) => path.trim().replace(coreSchema, "")

const readOperation = (one: JsonValue): Read<Operation> => {
  if (!isBody(one)) return invalid("invalidSyntax", "Expected an operation.")
  const named = attribute(one, "op")
  const op = kinds.find((kind) => typeof named === "string" && named.toLowerCase() === kind)
  const path = attribute(one, "path") ?? null
  if (op === undefined) return invalid("invalidSyntax", "Expected op as add, replace or remove.")
  if (path !== null && typeof path !== "string") return invalid("invalidPath", "Expected path as a text.")
  if (path === null && op === "remove") return invalid("noTarget", "Expected the path of what is removed.")
  return Either.right({
    op,
    path: path === null ? null : attributeNameIn(path),
    value: attribute(one, "value")
  })
}

const readOperations = (body: JsonValue): Read<ReadonlyArray<Operation>> => {
  const all = isBody(body) ? attribute(body, "Operations") : undefined
  return isList(all) && all.length <= maxOperations
    ? Either.all(all.map(readOperation))
    : invalid("invalidSyntax", `Expected Operations, at most ${maxOperations}.`)
}

/** The attributes that an operation changes: the one in its path, or those in its value. */
const attributesOf = ({ path, value }: Operation): ReadonlyArray<readonly [string, Value]> => {
  if (path !== null && path !== "") return [[path, value]]
  return isBody(value)
    ? Object.entries(value).flatMap(([name, each]) =>
        attributeNameIn(name) === "" && isBody(each)
          ? Object.entries(each)
          : [[attributeNameIn(name), each] as const]
      )
    : []
}

export const patchPerson = (body: JsonValue): Read<PersonChanges> =>
  Either.flatMap(readOperations(body), (operations) =>
    personChanges(
      operations.flatMap((operation) =>
        // A removed attribute has no value.
        attributesOf(operation).map(([name, value]) => [name, operation.op === "remove" ? null : value])
      )
    )
  )

/** Changes are applied in order. `set` replaces all members. */
interface MemberChange {
  readonly kind: "add" | "remove" | "set"
  readonly ids: ReadonlyArray<string>
}
export interface GroupChanges {
  readonly name?: string
  readonly externalId?: string | null
  readonly members: ReadonlyArray<MemberChange>
}

/** The members after the changes. Ids need not exist. */
export const membersAfter = (
  before: ReadonlyArray<string>,
  changes: ReadonlyArray<MemberChange>
): Read<ReadonlySet<string>> => {
  const now = new Set(before)
  for (const { ids, kind } of changes) {
    if (kind === "set") now.clear()
    for (const id of ids) {
      if (kind === "remove") now.delete(id)
      else now.add(id)
    }
  }
  return now.size > maxMembers
    ? invalid("invalidValue", `A group has at most ${maxMembers} members.`)
    : Either.right(now)
}

const idsOf = (value: Value): Read<ReadonlyArray<string>> => {
  const all = isList(value) ? value : value === undefined || value === null ? [] : [value]
  return Either.all(
    all.map((one) => textOf(isBody(one) ? attribute(one, "value") : one, "the value of a member"))
  )
}

const memberPath = /^members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]$/i

const membersChange = (op: Operation["op"], value: Value): Read<GroupChanges> => {
  // Without a value all members are removed; with an empty list none is.
  if (op === "remove" && (value === undefined || value === null)) {
    return Either.right({ members: [{ kind: "set", ids: [] }] })
  }
  return Either.map(idsOf(value), (ids) => ({ members: [{ kind: op === "replace" ? "set" : op, ids }] }))
}

const groupChange = (op: Operation["op"], name: string, value: Value): Read<GroupChanges> => {
  const [, one] = memberPath.exec(name) ?? []
  if (one !== undefined) {
    return Either.right({ members: [{ kind: op === "remove" ? "remove" : "add", ids: [one] }] })
  }
  const known = name.toLowerCase()
  if (known === "displayname") {
    return Either.map(textOf(value, "displayName"), (text) => ({ name: text, members: [] }))
  }
  if (known === "externalid") {
    return Either.map(externalIdOf(op === "remove" ? null : value), (change) => ({ ...change, members: [] }))
  }
  if (known === "members") return membersChange(op, value)
  // Ignoring it would keep members that the provider believes to be removed.
  return invalid("invalidPath", 'Known paths are members and members[value eq "…"].')
}

/** Attributes of a group that {@link groupChange} reads. Others are ignored. */
const groupAttributes = /^(?:displayname|externalid|members.*)$/is

const groupChanges = (
  all: ReadonlyArray<readonly [Operation["op"], string, Value]>
): Read<ReadonlyArray<GroupChanges>> =>
  Either.all(
    all
      .filter(([, name]) => groupAttributes.test(name))
      .map(([op, name, value]) => groupChange(op, name, value))
  )

const mergedChanges = (all: ReadonlyArray<GroupChanges>): GroupChanges => ({
  ...all.reduce<Partial<GroupChanges>>((made, change) => Object.assign(made, change), {}),
  members: all.flatMap(({ members }) => members)
})

/** Reads a whole group, from POST and PUT. */
export const readGroup = (body: JsonValue): Read<GroupChanges & { readonly name: string }> => {
  if (!isBody(body)) return invalid("invalidSyntax", "Expected a group.")
  const all = groupChanges(Object.entries(body).map(([name, value]) => ["replace", name, value]))
  return Either.flatMap(all, (changes) => {
    const { name, ...rest } = mergedChanges(changes)
    return Either.map(textOf(name, "displayName"), (text) => ({ ...rest, name: text }))
  })
}

export const patchGroup = (body: JsonValue): Read<GroupChanges> =>
  Either.flatMap(readOperations(body), (operations) =>
    Either.map(
      groupChanges(
        operations.flatMap((operation) =>
          attributesOf(operation).map(([name, value]) => [operation.op, name, value] as const)
        )
      ),
      mergedChanges
    )
  )

/** Maximum number of terms of one filter. */
const maxTerms = 5
const termPattern = /^\s*([\w.:-]+)\s+eq\s+("(?:[^"\\]|\\.)*"|true|false)(?:\s+and\s+(?=\S)|\s*$)/i
const workMailFilter = /^\s*emails\[\s*type\s+eq\s+"work"\s*\]\.value(?=\s)/i
const memberFilter = /^\s*members\[\s*value\s+eq\s+("(?:[^"\\]|\\.)*")\s*\]/i
/** Our attribute names, by those that providers use. */
const attributeAliases: Readonly<Record<string, string>> = {
  "emails.value": "username",
  emails: "username",
  "members.value": "members"
}

interface Term<N> {
  readonly name: N
  readonly value: string
}

/** Reads `name eq "text"` terms joined with `and`. Names match `names` and are returned as written there. */
export const readFilter = <N extends string>(
  text: string | undefined,
  names: ReadonlyArray<N>
): Read<ReadonlyArray<Term<N>>> => {
  const unknown = invalid(
    "invalidFilter",
    `Known filters are ${names.map((name) => `${name} eq "…"`).join(", ")}.`
  )
  const terms: Array<Term<N>> = []
  let rest = text?.replace(workMailFilter, "emails.value").replace(memberFilter, "members eq $1") ?? ""
  while (rest !== "") {
    const [whole, path = "", value = ""] = termPattern.exec(rest) ?? []
    const given = attributeNameIn(path).toLowerCase()
    const name = names.find((known) => known.toLowerCase() === (attributeAliases[given] ?? given))
    const parsed = Json.parse(value.startsWith('"') ? value : value.toLowerCase())
    if (whole === undefined || name === undefined || Either.isLeft(parsed) || terms.length === maxTerms) {
      return unknown
    }
    // Stored values are trimmed, too.
    terms.push({ name, value: String(parsed.right).trim() })
    rest = rest.slice(whole.length)
  }
  return Either.right(terms)
}
