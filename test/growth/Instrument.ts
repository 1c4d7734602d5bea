/**
 * Code that counts its own steps: modules are bundled with the packages that they use, and a counter is put at the head of
 * every function and every loop, and around every call of a built-in function that looks at more than one thing. The count
 * is the same each time, on every machine, which no clock is.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { build, type Plugin } from "esbuild"
import { parseAst } from "vite"

const root = Path.resolve(import.meta.dirname, "../..")
/** Inside of the project, so that packages that stay outside of the bundle are found. */
const folder = Path.join(root, "node_modules/.cache/growth")

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && "start" in value

const nodeOf = (value: unknown): Node | undefined => (isNode(value) ? value : undefined)

const childrenOf = (node: Node): ReadonlyArray<Node> =>
  Object.values(node).flatMap((value: unknown) =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []
  )

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"])
const loops = new Set([
  "ForStatement",
  "ForInStatement",
  "ForOfStatement",
  "WhileStatement",
  "DoWhileStatement"
])

/** Methods whose costs test/growth/Counter.mjs knows. */
const methods = new Set(
  (
    "indexOf lastIndexOf includes startsWith endsWith localeCompare match matchAll search replace replaceAll split repeat " +
    "padStart padEnd normalize toLowerCase toUpperCase toLocaleLowerCase isWellFormed toWellFormed trim trimStart trimEnd " +
    "join concat slice splice unshift shift reverse fill flat flatMap sort toSorted toReversed toSpliced with copyWithin set " +
    "toString exec test entries keys values fromEntries assign from of parse stringify fromCharCode fromCodePoint raw decode " +
    "encode segment"
  ).split(" ")
)
const made = new Set([
  "Set",
  "Map",
  "URL",
  "URLSearchParams",
  "Uint8Array",
  "Int32Array",
  "Float64Array",
  "Uint32Array"
])

/** `code`, a module, with its counters. */
export const instrument = (code: string): string => {
  const inserted: Array<readonly [at: number, order: number, text: string]> = []
  let order = 0
  const put = (at: number, text: string) => inserted.push([at, order++, text])
  /** Around an expression: what is inside of it is put between the two. */
  const around = (node: Node, before: string, after: string, inside: () => void) => {
    put(node.start, before)
    inside()
    put(node.end, after)
  }

  const body = (node: Node, inside: () => void) => {
    if (node.type !== "BlockStatement") return around(node, "{$growth.steps++;", "}", inside)
    const directives = (Array.isArray(node["body"]) ? node["body"] : []).filter(
      (each: unknown): each is Node => isNode(each) && typeof each["directive"] === "string"
    )
    put(directives.at(-1)?.end ?? node.start + 1, ";$growth.steps++;")
    return inside()
  }

  /** `spine`: part of an optional chain, where a call must stay a call. */
  const visit = (node: Node, spine = false): void => {
    const children = (except: ReadonlyArray<unknown> = []) => {
      for (const child of childrenOf(node)) if (!except.includes(child)) visit(child)
    }
    const block = nodeOf(node["body"])
    if (functions.has(node.type) && block !== undefined) {
      const inside = () => visit(block)
      children([block])
      if (block.type === "BlockStatement") body(block, inside)
      else around(block, "($growth.steps++,(", "))", inside)
      return
    }
    if (loops.has(node.type) && block !== undefined) {
      // In the order of the text: a `do` has its condition behind it.
      if (node.type === "DoWhileStatement") {
        body(block, () => visit(block))
        return children([block])
      }
      children([block])
      return body(block, () => visit(block))
    }
    if (node.type === "ChainExpression") {
      for (const child of childrenOf(node)) visit(child, true)
      return
    }
    if (spine && (node.type === "CallExpression" || node.type === "MemberExpression")) {
      const next = nodeOf(node[node.type === "CallExpression" ? "callee" : "object"])
      for (const child of childrenOf(node)) visit(child, child === next)
      return
    }
    const callee = nodeOf(node["callee"])
    if (node.type === "CallExpression" && callee?.type === "MemberExpression") {
      const target = nodeOf(callee["object"])
      const method = nodeOf(callee["property"])
      const known =
        method?.type === "Identifier" && callee["computed"] === false && methods.has(String(method["name"]))
      const open = code.indexOf("(", method?.end)
      const plain = method !== undefined && code.slice(method.end, open).trim() === ""
      if (known && plain && target !== undefined && target.type !== "Super") {
        const args = Array.isArray(node["arguments"]) ? node["arguments"].filter(isNode) : []
        // The target may stand in parentheses, which stay.
        const dot = code.lastIndexOf(".", method.start)
        put(node.start, "$growth.call(")
        visit(target)
        put(dot, `,"${String(method["name"])}"${args.length > 0 ? "," : ""}`)
        removed.push([dot, open + 1])
        for (const arg of args) visit(arg)
        return
      }
    }
    if (node.type === "NewExpression" && callee?.type === "Identifier" && made.has(String(callee["name"])))
      return around(node, "$growth.made(", ")", () => children())
    const argument = nodeOf(node["argument"])
    if (node.type === "SpreadElement" && argument !== undefined) {
      return around(argument, `$growth.${spreadsObject.has(node) ? "spreadObject" : "spread"}(`, ")", () =>
        visit(argument)
      )
    }
    if (node.type === "ObjectExpression") for (const child of childrenOf(node)) spreadsObject.add(child)
    const id = nodeOf(node["id"])
    const init = nodeOf(node["init"])
    if (node.type === "VariableDeclarator" && id?.type === "ArrayPattern" && init !== undefined) {
      const takesRest = childrenOf(id).some(({ type }) => type === "RestElement")
      visit(id)
      return takesRest ? around(init, "$growth.spread(", ")", () => visit(init)) : visit(init)
    }
    children()
  }
  const removed: Array<readonly [from: number, to: number]> = []
  const spreadsObject = new Set<Node>()

  const ast = nodeOf(parseAst(code, { allowReturnOutsideFunction: true }))
  if (ast === undefined) throw new Error("The code has no tree.")
  visit(ast)

  const parts: Array<string> = []
  const gone = removed.toSorted((a, b) => a[0] - b[0])
  let at = 0
  let next = 0
  const copy = (to: number) => {
    while (at < to) {
      const hole = gone[next]
      if (hole === undefined || hole[0] >= to) {
        parts.push(code.slice(at, to))
        at = to
      } else {
        if (hole[0] > at) parts.push(code.slice(at, hole[0]))
        at = Math.max(at, hole[1])
        next++
      }
    }
  }
  for (const [place, , text] of inserted.toSorted((a, b) => a[0] - b[0] || a[1] - b[1])) {
    copy(place)
    parts.push(text)
  }
  copy(code.length)
  return parts.join("")
}

/** Gives linkedom what the build gives it. */
const selectors: Plugin = {
  name: "selectors",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^css-select$/ }, ({ importer }) =>
      /[\\/]linkedom[\\/]/.test(importer) ? { path: Path.join(root, "scripts/selectors.mjs") } : undefined
    )
}

const banner = `import { createRequire as createRequireOfBundle } from "node:module"
import $growth from ${JSON.stringify(pathToFileURL(Path.join(import.meta.dirname, "Counter.mjs")).href)}
const require = createRequireOfBundle(import.meta.url)`

/** Writes the module `entry`, a path of the project, with all that it uses and counters; returns where. */
export const bundle = async (entry: string, external: ReadonlyArray<string> = []): Promise<string> => {
  const built = await build({
    entryPoints: [Path.join(root, entry)],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    charset: "utf8",
    logLevel: "error",
    legalComments: "none",
    external: ["@electric-sql/*", "@energetic-ai/*", "tesseract.js", "canvas", "pg-native", ...external],
    plugins: [selectors],
    logOverride: { "require-resolve-not-external": "silent" }
  })
  const [output] = built.outputFiles
  const name = entry.replaceAll(/[^\w]+/g, "-").replace(/-(?:ts|mjs)$/, "")
  const file = Path.join(folder, `${name}.mjs`)
  Fs.mkdirSync(folder, { recursive: true })
  Fs.writeFileSync(file, `${banner}\n${instrument(output?.text ?? "")}\nexport { $growth }\n`)
  return file
}
