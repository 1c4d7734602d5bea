#!/usr/bin/env node
/**
 * `npm create spoke`: writes a small project that answers from a Markdown file. Installs nothing and overwrites
 * nothing.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { createInterface } from "node:readline/promises"
import { parseArgs } from "node:util"

const templates = {
  node: "the library behind a server of node:http",
  hono: "the library in an application of Hono",
  next: "the library in an application of Next.js",
  service: "the service by itself, in a container or by npm start"
}
const defaults = { folder: "my-spoke", template: "node" }

const usage = `npm create spoke [folder] -- [--template ${Object.keys(templates).join("|")}] [--spoke version] [--yes]

${Object.entries(templates)
  .map(([name, about]) => `  ${name.padEnd(8)} ${about}`)
  .join("\n")}

The folder has to be empty or new. --spoke: a range, a tag or the path of a tarball. --yes: asks nothing.
`

const say = (text) => process.stdout.write(`${text}\n`)

/** An error that is printed without its stack. */
class Refused extends Error {}

const optionsOf = (args) => {
  try {
    const { positionals, values } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        spoke: { type: "string" },
        template: { type: "string", short: "t" },
        yes: { type: "boolean", short: "y" }
      }
    })
    if (positionals.length > 1) throw new Refused(`One folder, please, not ${positionals.join(" and ")}.`)
    return { ...values, folder: positionals[0] }
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(`${error.message}\n\n${usage}`)
  }
}

/** Asks for missing options on a terminal. `--yes` uses the defaults. */
const completed = async (options) => {
  const missing = Object.keys(defaults).filter((name) => options[name] === undefined)
  if (missing.length === 0 || options.yes) return { ...defaults, ...stated(options) }
  if (!process.stdin.isTTY) throw new Refused(`Say ${missing.join(" and ")}, or --yes.\n\n${usage}`)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const given = { ...options }
    for (const name of missing) {
      if (name === "template") say(usage.split("\n\n")[1])
      given[name] = (await terminal.question(`${name} (${defaults[name]}): `)).trim() || defaults[name]
    }
    return given
  } finally {
    terminal.close()
  }
}

const stated = (options) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

const assertEmpty = (folder) => {
  const found = Fs.statSync(folder, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory()) throw new Refused(`${folder} is a file.`)
  if (Fs.readdirSync(folder).length > 0) throw new Refused(`${folder} is not empty. Nothing was changed.`)
}

/** Package names have no capitals and no spaces. */
const packageName = (folder) =>
  Path.basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/gu, "-")
    .replace(/^-+|-+$/gu, "") || defaults.folder

const own = (...names) => Path.join(import.meta.dirname, ...names)

const read = (file) => JSON.parse(Fs.readFileSync(file, "utf8"))

/** npm resolves the path of a tarball from the new folder; the user gives it from the current one. */
const dependency = (spoke) =>
  /[/\\]|\.tgz$/u.test(spoke) && Fs.existsSync(spoke) ? `file:${Path.resolve(spoke)}` : spoke

const write = (folder, template, spoke) => {
  Fs.mkdirSync(folder, { recursive: true })
  const parts = template === "service" ? ["shared", template] : ["shared", "library", template]
  for (const each of parts) Fs.cpSync(own("templates", each), folder, { recursive: true })
  // npm leaves files of this name out of packages.
  Fs.renameSync(Path.join(folder, "gitignore"), Path.join(folder, ".gitignore"))
  const manifest = Path.join(folder, "package.json")
  const { dependencies, ...rest } = read(manifest)
  const made = {
    name: packageName(folder),
    private: true,
    type: "module",
    ...rest,
    dependencies: { ...dependencies, spoke: dependency(spoke) }
  }
  Fs.writeFileSync(manifest, `${JSON.stringify(made, null, 2)}\n`)
}

const main = async () => {
  const options = optionsOf(process.argv.slice(2))
  if (options.help) return say(usage)
  const { folder, spoke = `^${read(own("package.json")).version}`, template } = await completed(options)
  if (!Object.hasOwn(templates, template))
    throw new Refused(`There is no template ${template}: ${Object.keys(templates).join(", ")}.`)
  const target = Path.resolve(folder)
  assertEmpty(target)
  write(target, template, spoke)
  say(`Made ${folder} from the template ${template}. Next:\n`)
  say(`  cd ${folder}\n  npm install\n  npm start\n\nIts README.md says the rest.`)
}

try {
  await main()
} catch (error) {
  if (!(error instanceof Refused)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
