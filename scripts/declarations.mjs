/**
 * Writes the declarations of the public entries into dist/types. The package needs them, a start does not. The library
 * and the client describe requests and answers in plain types, so that only users of Effect install it.
 */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { dist, root } from "./seed.mjs"

const target = Path.join(dist, "types")
const wireFile = Path.join(target, "wire.d.ts")
/** Entries that do not use Effect's types. */
const plainEntries = ["index", "client", "express", "fastify", "hono", "next"]

const compile = (project) => {
  const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
  const { status } = spawnSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}

const read = (file) => Fs.readFileSync(file, "utf8")

/** The compiler keeps the file extensions of the sources in declarations. */
const renameImports = () => {
  for (const name of Fs.readdirSync(target, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".d.ts")) continue
    const file = Path.join(target, name)
    const text = read(file)
    const renamed = text.replace(/((?:from|import\()\s*["']\.{1,2}\/[^"']+)\.ts(["'])/gu, "$1.js$2")
    if (renamed !== text) Fs.writeFileSync(file, renamed)
  }
}

const modules = /(?:from|import\()\s*["']([^"']+)["']/gu
const isOfEffect = (file) => /from "@?effect\//u.test(read(file))
const declarationOf = (file, specifier) =>
  Path.resolve(Path.dirname(file), specifier).replace(/\.js$/u, ".d.ts")

/** `file` and its imports, except modules that use Effect. */
const collectImports = (file, seen = new Set()) => {
  if (seen.has(file)) return seen
  seen.add(file)
  if (isOfEffect(file)) return seen
  for (const [, specifier] of read(file).matchAll(modules)) {
    if (specifier.startsWith(".")) collectImports(declarationOf(file, specifier), seen)
  }
  return seen
}

const imports = /^import (?:type )?\{([^}]*)\} from "(\.[^"]+)";\n/gmu

/**
 * The types that plain declarations import from modules that use Effect: name, module, and whether it is a schema's
 * encoded type.
 */
const schemaTypesIn = (file) => {
  const text = read(file)
  return [...text.matchAll(imports)]
    .map(([line, names, specifier]) => ({ line, names, module: declarationOf(file, specifier) }))
    .filter(({ module }) => isOfEffect(module))
    .flatMap(({ line, module, names }) =>
      names.split(",").map((each) => {
        const name = each.replace(/^\s*type\s/u, "").trim()
        return { name, module, line, encoded: text.includes(`typeof ${name}.Encoded`) }
      })
    )
}

/** A program whose declarations expand those types. */
const programOf = (schemaTypes) => {
  const source = (module) => `../../src/${Path.relative(target, module).replace(/\.d\.ts$/u, ".ts")}`
  return `
declare const wireOf: <I>(schema: { readonly Encoded: I }) => I
declare const oneOf: <T extends string>() => { [K in T]: K }[T]
${schemaTypes
  .map(({ encoded, module, name }, at) => {
    const value = encoded ? `wireOf(from${at})` : `oneOf<from${at}>()`
    return `import { ${encoded ? "" : "type "}${name} as from${at} } from "${source(module)}"
export const ${name} = ${value}`
  })
  .join("\n")}
`
}

/** Replaces schema types by plain types in one file that all of `files` import. */
const flatten = (files) => {
  const schemaTypes = new Map()
  for (const file of files) {
    for (const each of schemaTypesIn(file)) {
      const known = schemaTypes.get(each.name)
      if (known !== undefined && known.module !== each.module)
        throw new Error(`Two types are named ${each.name}`)
      schemaTypes.set(each.name, { ...each, encoded: each.encoded || known?.encoded === true })
    }
  }
  const folder = Path.join(dist, "wire")
  Fs.mkdirSync(folder, { recursive: true })
  Fs.writeFileSync(Path.join(folder, "wire.ts"), programOf([...schemaTypes.values()]))
  const compilerOptions = { rootDir: "../..", outDir: "out", noCheck: true }
  const settings = { extends: "../../tsconfig.build.json", compilerOptions, files: ["wire.ts"] }
  Fs.writeFileSync(Path.join(folder, "tsconfig.json"), JSON.stringify(settings))
  compile(folder)
  const written = read(Path.join(folder, "out/dist/wire/wire.d.ts"))
  Fs.rmSync(folder, { recursive: true })
  const types = written
    .replace(/^import .*\n/gmu, "")
    .replace(/import\("\.\.\/\.\.\/src\/([^"]+)\.ts"\)/gu, 'import("./$1.js")')
    .replace(/^export declare const (\w+): /gmu, "export type $1 = ")
  Fs.writeFileSync(wireFile, `/** What requests and answers look like on the wire. */\n${types}`)
  for (const file of files) {
    const used = schemaTypesIn(file)
    if (used.length === 0) continue
    const names = used.map(({ name }) => name).join(", ")
    let text = read(file)
    for (const { line, name } of used) {
      text = text.replace(line, "").replaceAll(`typeof ${name}.Encoded`, name)
    }
    const relative = Path.relative(Path.dirname(file), wireFile).replace(/\.d\.ts$/u, ".js")
    const from = relative.startsWith(".") ? relative : `./${relative}`
    Fs.writeFileSync(file, `import type { ${names} } from "${from}";\n${text}`)
  }
}

const plainFiles = () => {
  const seen = new Set()
  for (const entry of plainEntries) collectImports(Path.join(target, `${entry}.d.ts`), seen)
  return [...seen]
}

Fs.rmSync(target, { recursive: true, force: true })
compile(Path.join(root, "tsconfig.build.json"))
renameImports()
flatten(plainFiles().filter((file) => !isOfEffect(file)))
const remaining = plainFiles().filter(isOfEffect)
if (remaining.length > 0)
  throw new Error(`Types of Effect are left in the plain declarations: ${remaining.join(", ")}`)
