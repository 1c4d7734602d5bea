/**
 * Writes the declarations of the public entries into dist/types. The package needs them, a start does not. The library
 * and the client describe requests and answers in plain types, so that only users of Effect install it.
 */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { dist, root } from "./seed.mjs"

const target = Path.join(dist, "types")
const wire = Path.join(target, "wire.d.ts")
/** Entries that name nothing of Effect. */
const plain = ["index", "client", "express", "fastify", "hono", "next"]

const compile = (project) => {
  const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
  const { status } = spawnSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}

const read = (file) => Fs.readFileSync(file, "utf8")

/** The compiler keeps the file extensions of the sources in declarations. */
const rename = () => {
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
const reached = (file, seen = new Set()) => {
  if (seen.has(file)) return seen
  seen.add(file)
  if (isOfEffect(file)) return seen
  for (const [, specifier] of read(file).matchAll(modules)) {
    if (specifier.startsWith(".")) reached(declarationOf(file, specifier), seen)
  }
  return seen
}

const imports = /^import (?:type )?\{([^}]*)\} from "(\.[^"]+)";\n/gmu

/**
 * The types that plain declarations import from modules that use Effect: name, module, and whether it is a schema's
 * encoded type.
 */
const takenBy = (file) => {
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
const programOf = (taken) => {
  const source = (module) => `../../src/${Path.relative(target, module).replace(/\.d\.ts$/u, ".ts")}`
  return `
declare const wireOf: <I>(schema: { readonly Encoded: I }) => I
declare const oneOf: <T extends string>() => { [K in T]: K }[T]
${taken
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
  const taken = new Map()
  for (const file of files) {
    for (const each of takenBy(file)) {
      const known = taken.get(each.name)
      if (known !== undefined && known.module !== each.module)
        throw new Error(`Two types are named ${each.name}`)
      taken.set(each.name, { ...each, encoded: each.encoded || known?.encoded === true })
    }
  }
  const folder = Path.join(dist, "wire")
  Fs.mkdirSync(folder, { recursive: true })
  Fs.writeFileSync(Path.join(folder, "wire.ts"), programOf([...taken.values()]))
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
  Fs.writeFileSync(wire, `/** What requests and answers look like on the wire. */\n${types}`)
  for (const file of files) {
    const mine = takenBy(file)
    if (mine.length === 0) continue
    const names = mine.map(({ name }) => name).join(", ")
    let text = read(file)
    for (const { line, name } of mine) {
      text = text.replace(line, "").replaceAll(`typeof ${name}.Encoded`, name)
    }
    const way = Path.relative(Path.dirname(file), wire).replace(/\.d\.ts$/u, ".js")
    const from = way.startsWith(".") ? way : `./${way}`
    Fs.writeFileSync(file, `import type { ${names} } from "${from}";\n${text}`)
  }
}

const reachedByPlain = () => {
  const seen = new Set()
  for (const entry of plain) reached(Path.join(target, `${entry}.d.ts`), seen)
  return [...seen]
}

Fs.rmSync(target, { recursive: true, force: true })
compile(Path.join(root, "tsconfig.build.json"))
rename()
flatten(reachedByPlain().filter((file) => !isOfEffect(file)))
const left = reachedByPlain().filter(isOfEffect)
if (left.length > 0) throw new Error(`Types of Effect are left in the plain declarations: ${left.join(", ")}`)
