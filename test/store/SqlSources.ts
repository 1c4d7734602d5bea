/** Reads the SQL of the source from its templates: each statement as one text, including its fragments. */
import * as Predicate from "effect/Predicate"
import { transformSync } from "esbuild"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { parseAst } from "vite"

const root = Path.join(import.meta.dirname, "../../src")

export interface Statement {
  /** The file below `src`, and the name of the declaration: `store/chat/Turns.ts begin`. */
  readonly place: string
  /** In lower case, without comments. Values are `$`. */
  readonly text: string
  /** The purpose for which the statement sees the rows of every tenant, from its first comment; null: it does not. */
  readonly everyTenant: string | null
}

/** A node of a syntax tree: its type, and its parts by name. */
interface Node {
  readonly type: string
  readonly [part: string]: unknown
}

interface Parsed {
  readonly program: Node
  /** The declarations of the file, by name. */
  readonly declared: Map<string, Node>
  /** Its imports from the project: the name there, and the file. */
  readonly imported: Map<string, readonly [name: string, file: string]>
}

const isNode = (value: unknown): value is Node =>
  Predicate.isRecord(value) && typeof value["type"] === "string"
const nodesOf = (value: unknown): ReadonlyArray<Node> => (Array.isArray(value) ? value.filter(isNode) : [])
const children = (node: Node): ReadonlyArray<Node> =>
  Object.values(node).flatMap((value) => (isNode(value) ? [value] : nodesOf(value)))
const nameOf = (node: unknown): string | undefined =>
  isNode(node) && node.type === "Identifier" && typeof node["name"] === "string" ? node["name"] : undefined

const isSql = (node: Node) =>
  node.type === "TaggedTemplateExpression" &&
  (nameOf(node["tag"]) === "sql" ||
    (isNode(node["tag"]) &&
      node["tag"].type === "MemberExpression" &&
      nameOf(node["tag"]["property"]) === "sql"))

const parse = (file: string): Parsed => {
  const { code } = transformSync(Fs.readFileSync(Path.join(root, file), "utf8"), {
    loader: file.endsWith("x") ? "tsx" : "ts",
    target: "esnext"
  })
  const program: unknown = parseAst(code)
  const parsed: Parsed = {
    program: isNode(program) ? program : { type: "Program" },
    declared: new Map(),
    imported: new Map()
  }
  const visit = (node: Node): void => {
    const name = nameOf(node["id"])
    const value = node.type === "FunctionDeclaration" ? node["body"] : node["init"]
    // The result of a `yield*` is not SQL.
    if (name !== undefined && isNode(value) && value.type !== "YieldExpression")
      parsed.declared.set(name, value)
    if (node.type === "ImportDeclaration" && isNode(node["source"])) {
      const from = String(node["source"]["value"])
      for (const each of from.startsWith(".") ? nodesOf(node["specifiers"]) : []) {
        const [local, there] = [nameOf(each["local"]), nameOf(each["imported"])]
        if (local !== undefined && there !== undefined)
          parsed.imported.set(local, [there, Path.posix.join(Path.posix.dirname(file), from)])
      }
    }
    children(node).forEach(visit)
  }
  visit(parsed.program)
  return parsed
}

const files = Fs.readdirSync(root, { recursive: true, encoding: "utf8" })
  .map((name) => name.split(Path.sep).join("/"))
  .filter((name) => name.endsWith(".ts") && !name.startsWith("ui/"))
  .toSorted()
const all = new Map(files.map((file) => [file, parse(file)]))

/** What is inside `node`. Names of properties do not refer to declarations. */
const inside = (node: Node): ReadonlyArray<Node> =>
  node.type === "MemberExpression" && isNode(node["object"]) && node["computed"] !== true
    ? [node["object"]]
    : children(node)

/** The declaration that a name in `file` refers to, and its file. */
const declarationOf = (named: string, file: string) => {
  const [name, from] = all.get(file)?.imported.get(named) ?? [named, file]
  const found = all.get(from)?.declared.get(name)
  return found === undefined ? undefined : { found, from }
}

/** The declarations with SQL, and those that refer to them. */
const findWithSql = (): ReadonlySet<Node> => {
  const users = new Map<Node, Array<Node>>()
  const withSql = new Set<Node>()
  const visit = (node: Node, file: string, declaration: Node): void => {
    const named = nameOf(node)
    const used = named === undefined ? undefined : declarationOf(named, file)?.found
    if (used !== undefined) users.set(used, [...(users.get(used) ?? []), declaration])
    if (isSql(node)) withSql.add(declaration)
    for (const child of isSql(node) ? children(node) : inside(node)) visit(child, file, declaration)
  }
  for (const [file, { declared }] of all) for (const node of declared.values()) visit(node, file, node)
  // The set grows while it is read.
  for (const node of withSql) for (const user of users.get(node) ?? []) withSql.add(user)
  return withSql
}
/** Only these are followed. The others are far more. */
const withSql = findWithSql()

/** The texts of templates in `node`, and in the declarations that it refers to; each is followed once. */
const fragments = (node: Node, file: string, seen: ReadonlySet<Node>): string => {
  if (isSql(node)) return textOf(node, file, seen)
  const named = nameOf(node)
  if (named !== undefined) {
    const declaration = declarationOf(named, file)
    if (declaration === undefined || seen.has(declaration.found) || !withSql.has(declaration.found)) return ""
    return fragments(declaration.found, declaration.from, new Set([...seen, declaration.found]))
  }
  return inside(node)
    .map((child) => fragments(child, file, seen))
    .filter((text) => text.trim() !== "")
    .join(" ")
}

const textOf = (node: Node, file: string, seen: ReadonlySet<Node>): string => {
  const template = isNode(node["quasi"]) ? node["quasi"] : node
  const between = nodesOf(template["expressions"])
  return nodesOf(template["quasis"])
    .map((quasi, place) => {
      const value = quasi["value"]
      const text = Predicate.isRecord(value) ? String(value["cooked"]) : ""
      const next = between[place]
      return next === undefined ? text : `${text} ${fragments(next, file, seen) || "$"}`
    })
    .join(" ")
}

const clean = (text: string) =>
  text
    .replaceAll(/--[^\n]*/gu, " ")
    .replaceAll(/\/\* every tenant: \w+ \*\//gu, " ")
    .replaceAll(/\s+/gu, " ")
    .toLowerCase()
    .trim()

const everyTenantOf = (text: string) =>
  /^\/\* every tenant: (?<name>.+?) \*\//u.exec(text)?.groups?.["name"] ?? null

/** Every SQL template of the source, also fragments. */
export const statements: ReadonlyArray<Statement> = files.flatMap((file) => {
  const found: Array<Statement> = []
  const visit = (node: Node, declaration: string): void => {
    if (isSql(node)) {
      const text = textOf(node, file, new Set())
      found.push({ place: `${file} ${declaration}`, text: clean(text), everyTenant: everyTenantOf(text) })
    }
    // A statement after `yield*` belongs to the declaration of the generator.
    const own =
      isNode(node["init"]) && node["init"].type !== "YieldExpression" ? nameOf(node["id"]) : undefined
    for (const child of children(node)) visit(child, own ?? declaration)
  }
  const parsed = all.get(file)
  if (parsed !== undefined) visit(parsed.program, "")
  return found
})

/** Splits `text` into its parenthesized statements and the remaining text. */
const blocksOf = (text: string): ReadonlyArray<string> => {
  const blocks: Array<string> = []
  const open: Array<{ readonly isStatement: boolean; text: string }> = [{ isStatement: true, text: "" }]
  for (const piece of text.split(/([()])/u)) {
    const at = open.length
    const top = open[at - 1]
    if (top === undefined) continue
    if (piece === "(") open.push({ isStatement: false, text: "" })
    else if (piece === ")" && at > 1) {
      const { isStatement, text: inside } = open.pop() ?? top
      const outer = open[at - 2]
      if (outer === undefined) continue
      if (isStatement) blocks.push(inside)
      outer.text += isStatement ? "()" : `(${inside})`
    } else if (top.text.trim() === "" && /^\s*(?:select|with|insert|update|delete)\b/u.test(piece))
      open[at - 1] = { isStatement: true, text: piece }
    else top.text += piece
  }
  return [...blocks, open.map((left) => left.text).join(" ")]
}

const words = new Set(
  "set where on join left right inner cross full using values select order group limit for returning as union offset having and in".split(
    " "
  )
)
/** Types of columns, which may follow a comma. */
const types = new Set(["text", "jsonb", "int", "bigint"])

/** The tables that `block` reads or changes, with their aliases. */
const referred = (block: string, tables: ReadonlyArray<string>) => {
  const reference = new RegExp(
    `(?:\\b(from|join|update|using) +|(,) *)(${tables.join("|")})\\b(?: +as)?(?: +([a-z_]+))?`,
    "gu"
  )
  return Array.from(block.matchAll(reference)).flatMap(([, , comma, table = "", given]) => {
    const alias = given === undefined || words.has(given) ? undefined : given
    // Without an alias it is a column.
    const isColumn = comma !== undefined && (alias === undefined || types.has(alias))
    return isColumn ? [] : [{ table, alias }]
  })
}

/** Tables into which rows are inserted without the column. */
const added = (block: string, tables: ReadonlyArray<string>) =>
  Array.from(block.matchAll(new RegExp(`\\binto +(${tables.join("|")})\\b[^(]*\\(([^)]*)`, "gu"))).flatMap(
    ([, table = "", columns = ""]) => (/\btenant_id\b/u.test(columns) ? [] : [table])
  )

/**
 * The tables that a statement uses without naming the tenant. A tenant is named if `tenant_id` of the table is compared
 * with a value, or with that of another table whose tenant is named. `allowed` tables are excluded.
 */
export const unnamed = (
  text: string,
  tables: ReadonlyArray<string>,
  allowed: ReadonlyArray<string> = []
): ReadonlyArray<string> =>
  blocksOf(text).flatMap((block) => {
    const references = referred(block, tables)
    const aliases = references.flatMap(({ alias }) => (alias === undefined ? [] : [alias]))
    const columnOf = ({ alias, table }: (typeof references)[number]) =>
      alias === undefined ? `(?:\\b${table}\\.|(?<![.\\w]))tenant_id\\b` : `\\b${alias}\\.tenant_id\\b`
    const labelOf = ({ alias, table }: (typeof references)[number]) =>
      alias === undefined ? table : `${table} ${alias}`
    const own = `(?:${[...aliases, "-"].join("|")})\\.tenant_id\\b`
    const isGiven = (column: string) =>
      new RegExp(
        `${column} *(?:=(?! *${own})|in\\b)|(?<!\\b(?:${[...aliases, "-"].join("|")})\\.tenant_id) = *${column}|` +
          `\\([^()]*${column}[^()]*\\) *(?:=|in\\b|>)|= *\\([^()]*${column}`,
        "u"
      ).test(block)
    const given = references.map((one) => allowed.includes(labelOf(one)) || isGiven(columnOf(one)))
    const meets = (one: string, other: string) =>
      new RegExp(`${one} *= *${other}|${other} *= *${one}`, "u").test(block)
    // Follows equal columns from table to table.
    for (let before = -1; before !== given.filter(Boolean).length;) {
      before = given.filter(Boolean).length
      for (const [place, one] of references.entries())
        given[place] ||= references.some(
          (other, there) => given[there] === true && meets(columnOf(one), columnOf(other))
        )
    }
    const left = references.filter((_, place) => given[place] !== true)
    return [...left.map(labelOf), ...added(block, tables)]
  })
