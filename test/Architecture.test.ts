/** The table of dependencies, and conventions that a scan of the source can check. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"

const root = Path.join(import.meta.dirname, "../src")

const files = Fs.readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.[cm]?[jt]sx?$/.test(name))
  .map((name) => name.split(Path.sep).join("/"))
  .toSorted()

const texts = new Map(files.map((file) => [file, Fs.readFileSync(Path.join(root, file), "utf8")]))
const textOf = (file: string) => texts.get(file) ?? ""

/** Comments that stand on lines of their own, or at the end of one. */
const withoutComments = (text: string) =>
  text
    .replace(/^\s*\/\*[\s\S]*?\*\//gm, "")
    .replace(/^\s*\/\/.*$/gm, "")
    .replace(/\s\/\/ .*$/gm, "")

/** What a module names after `import`, `export … from`, `import()` and `require()`. */
export const importsOf = (text: string): ReadonlyArray<string> => {
  const code = withoutComments(text)
  const found = [
    ...code.matchAll(/^[ \t]*(?:import|export)\b(?:[^"'`;]*?\bfrom)?\s*["']([^"'\n]+)["']/gm),
    ...code.matchAll(/\b(?:import|require)\s*\(\s*["'`]([^"'`\n]+)["'`]/g),
    ...code.matchAll(/\bnew URL\(\s*["'`](\.[^"'`\n]+)["'`]\s*,\s*import\.meta\.url/g)
  ]
  return found.map(([, name]) => name ?? "")
}

/** Those of them whose import alone is erased: `import type`, `export type … from`. */
export const typesOf = (text: string): ReadonlyArray<string> =>
  Array.from(
    withoutComments(text).matchAll(
      /^[ \t]*(?:import|export)\s+type\s+(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+)\s+from\s*["']([^"'\n]+)["']/gm
    ),
    ([, name]) => name ?? ""
  )

/**
 * Where a file belongs. A capability's tag lies beside the folder of its backends; an API declaration is what a client
 * derives from; the mount puts handlers behind their declarations.
 */
const zones = {
  domain: /^domain\//,
  concurrency: /^concurrency\//,
  testing: /^testing\//,
  search: /^search\//,
  tag: /^capabilities\/[^/]+\.ts$/,
  backend: /^capabilities\/[^/]+\//,
  store: /^store\//,
  readers: /^readers\//,
  channels: /^channels\//,
  usecases: /^usecases\//,
  declaration: /^http\/(?:.*Api|Envelope|Auth|server\/RequestId|hosted\/accounts\/SameOrigin)\.ts$/,
  handlers: /^http\/.*Handlers\.ts$/,
  mount: /^http\/server\/(?:Server|Web)\.ts$/,
  http: /^http\//,
  workers: /^workers\//,
  app: /^app\//,
  ui: /^ui\//,
  client: /^client(?:\.ts$|\/)/,
  entry: /^(?:main|index|effect|express|fastify|hono|next)\.ts$/
} as const
type Zone = keyof typeof zones

const isZone = (name: string): name is Zone => name in zones

/** The first that matches: `http/Api.ts` is a declaration before it is of `http`. */
const zoneOf = (file: string): Zone | undefined =>
  Object.keys(zones)
    .filter(isZone)
    .find((zone) => zones[zone].test(file))

interface Rule {
  readonly local: ReadonlyArray<Zone>
  readonly packages: ReadonlyArray<RegExp>
  /** Where types alone may come from: nothing of them reaches what is built. */
  readonly types?: ReadonlyArray<Zone>
}

const effect = /^effect(?:\/|$)/
const anything = /./
const platform = /^@effect\/platform(?:\/|$)/
const allZones = Object.keys(zones).filter(isZone)

/** The imports that each zone may have. A backend may also import its own folder, which this table does not show. */
const rules: Record<Zone, Rule> = {
  domain: { local: ["domain"], packages: [effect, /^@effect\/platform\/HttpApiSchema$/] },
  concurrency: { local: ["domain", "concurrency"], packages: [effect, /^@effect\/sql\/Statement$/] },
  testing: { local: ["domain"], packages: [effect] },
  search: { local: ["domain", "concurrency", "search"], packages: [effect, /^porter2$/] },
  tag: {
    local: ["domain", "concurrency", "search", "tag"],
    packages: [effect, /^@effect\/ai\/Prompt$/, /^node:crypto$/]
  },
  backend: { local: ["domain", "concurrency", "search", "tag"], packages: [anything] },
  store: { local: ["domain", "concurrency", "search", "tag", "store"], packages: [anything] },
  readers: { local: ["domain", "concurrency", "search", "tag", "readers"], packages: [anything] },
  channels: { local: ["domain", "concurrency", "search", "tag", "channels"], packages: [anything] },
  usecases: {
    local: ["domain", "concurrency", "search", "tag", "store", "readers", "channels", "usecases"],
    packages: [effect, /^@effect\/sql\/SqlClient$/, /^@effect\/ai\/Prompt$/, /^node:crypto$/]
  },
  declaration: { local: ["domain", "concurrency", "declaration"], packages: [effect, platform] },
  handlers: {
    local: ["domain", "concurrency", "declaration", "http", "usecases"],
    packages: [effect, platform]
  },
  http: {
    local: ["domain", "concurrency", "tag", "declaration", "http", "usecases"],
    packages: [effect, platform, /^node:/]
  },
  mount: {
    local: ["declaration", "handlers", "http"],
    packages: [effect, platform, /^@effect\/platform-node\//, /^node:/]
  },
  workers: {
    local: ["domain", "concurrency", "search", "tag", "backend", "store", "readers", "workers"],
    packages: [anything]
  },
  app: { local: allZones.filter((zone) => zone !== "entry"), packages: [anything] },
  ui: { local: ["ui"], types: ["domain", "declaration"], packages: [anything] },
  client: { local: ["domain", "concurrency", "declaration", "client"], packages: [effect, platform] },
  entry: { local: allZones, packages: [anything] }
}

const capabilityOf = (file: string) => /^capabilities\/([^/.]+)/.exec(file)?.[1]

/** What is wrong with `file` importing `name`, or nothing. */
export const complaint = (file: string, name: string, isType = false): string | undefined => {
  const zone = zoneOf(file)
  if (zone === undefined) return `${file} is in no folder that the design knows`
  const rule = rules[zone]
  if (!name.startsWith(".")) {
    return rule.packages.some((allowed) => allowed.test(name)) ? undefined : `${file} imports ${name}`
  }
  const target = Path.posix.join(Path.posix.dirname(file), name)
  if (target.startsWith(".."))
    return zone === "app" || zone === "entry" ? undefined : `${file} leaves src: ${name}`
  const other = zoneOf(target)
  if (other === undefined) return `${file} imports ${target}, which is in no folder that the design knows`
  const own = capabilityOf(file) !== undefined && capabilityOf(file) === capabilityOf(target)
  const typed = isType && rule.types?.includes(other) === true
  return own || typed || rule.local.includes(other) ? undefined : `${file} imports ${target}`
}

/** The files of `src` that each file of `src` imports. */
const localImports = new Map(
  files.map((file) => [
    file,
    importsOf(textOf(file))
      .filter((name) => name.startsWith("."))
      .map((name) => Path.posix.join(Path.posix.dirname(file), name))
  ])
)

/** Every group of files that reach each other: oxlint's `import/no-cycle` passes over imports of types. */
export const circles = (
  graph: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<ReadonlyArray<string>> => {
  const reached = (start: string) => {
    const seen = new Set<string>()
    const next = [...(graph.get(start) ?? [])]
    for (let file = next.pop(); file !== undefined; file = next.pop()) {
      if (seen.has(file)) continue
      seen.add(file)
      next.push(...(graph.get(file) ?? []))
    }
    return seen
  }
  const reach = new Map([...graph.keys()].map((file) => [file, reached(file)]))
  const groups = [...reach].flatMap(([file, seen]) =>
    seen.has(file) ? [[...seen].filter((other) => reach.get(other)?.has(file)).toSorted()] : []
  )
  return [...new Map(groups.map((group) => [group.join(), group])).values()]
}

/**
 * The constants and type aliases that a module exports. Interfaces and classes are left out: the declarations of other
 * modules name them, also where no source does.
 */
export const exportsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(
    Array.from(
      withoutComments(text).matchAll(/^export (?:const|let|function|type) (\w+)/gm),
      ([, name = ""]) => name
    )
  )
]

/** What the public entries pass on as a whole, and themselves. */
const entries = [
  "index.ts",
  "effect.ts",
  "client.ts",
  "client/Effect.ts",
  "express.ts",
  "fastify.ts",
  "hono.ts",
  "next.ts"
]
const passedOn = new Set([
  ...entries,
  // An entry of the build.
  "store/database/Seed.ts",
  ...entries.flatMap((entry) =>
    Array.from(textOf(entry).matchAll(/^export \*(?: as \w+)? from "([^"]+)"/gm), ([, name = ""]) =>
      Path.posix.join(Path.posix.dirname(entry), name)
    )
  )
])

/** What is not `src` and imports from it. */
const checks = ["test", "bench", "scripts"].flatMap((folder) =>
  Fs.readdirSync(Path.join(root, "..", folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.[cm]?[jt]sx?$/.test(name) && !name.includes("node_modules"))
    .map((name) => {
      const file = Path.join(root, "..", folder, name)
      const text = Fs.readFileSync(file, "utf8")
      const imports = new Set(
        importsOf(text)
          .filter((other) => other.startsWith("."))
          .map((other) =>
            Path.relative(root, Path.join(Path.dirname(file), other))
              .split(Path.sep)
              .join("/")
          )
      )
      return { text, imports }
    })
)

/** Exported for the tests of one part alone. */
const onlyTested: Readonly<Record<string, ReadonlyArray<string>>> = {
  "app/config/SecretFiles.ts": ["secretVariables"],
  "app/config/UnknownVariables.ts": ["unknownVariables"],
  "app/cli/Doctor.ts": ["examine"],
  "app/cli/MaskArguments.ts": ["maskArguments"],
  "app/cli/doctor/Database.ts": ["clockFinding"],
  "app/cli/doctor/Files.ts": ["diskFinding"],
  "app/cli/doctor/Services.ts": ["redisFindings"],
  "capabilities/RateLimiter/Sql.ts": ["removeExpired"],
  "domain/agents/evaluation/Judge.ts": ["containsFact", "isRefusal", "matchesDocument"],
  "store/channels/InboundEvents.ts": ["encodeEvent"],
  "capabilities/VectorSearch/PgvectorRecall.ts": ["recallMetric"],
  "channels/BuiltIn.ts": ["layerWithGraph"],
  "domain/accounts/ApiKey.ts": ["KeyStatus", "AllowedOrigin"],
  "domain/knowledge/Source.ts": ["Refresh"],
  "http/server/Server.ts": ["publicHandlers"],
  "http/Sse.ts": ["body", "wantsHeartbeatParts"],
  "http/realtime/RealtimeSocket.ts": ["untraced"],
  "http/system/Metrics.ts": ["exposition"],
  "store/Database.ts": ["layerMemory"],
  "store/database/EmbeddedMaintenance.ts": ["interval", "maintainOnce"],
  "usecases/channels/GroupCommit.ts": ["Outcome"],
  "usecases/chat/TurnParts.ts": ["maxUnreadParts"]
}

/** Habits, each with the one place that is free of it. */
const forbidden: ReadonlyArray<readonly [what: string, pattern: RegExp, except: RegExp]> = [
  ["new Date()", /\bnew Date\b/, /^ui\//],
  ["Date.now()", /\bDate\.now\b/, /^ui\//],
  ["process.env", /\bprocess\s*(?:\.\s*env\b|\[\s*["']env)/, /^app\/config\/Config\.ts$/],
  ["console", /\bconsole\s*\./, /^(?:app\/telemetry\/Observability|main)\.ts$|^ui\//],
  ["raw fetch()", /(?<![.\w])(?:globalThis\.)?fetch\s*\(/, /^capabilities\/OutboundHttp|^ui\//],
  // What browsers and the client read is stored nowhere; a document may be nested however deeply; the error about an
  // operator's file says where it is wrong.
  [
    "JSON.parse",
    /\bJSON\.parse\b/,
    /^domain\/Json\.ts$|^capabilities\/DocumentParser\/Sniff\.ts$|^app\/cli\/ConfigurationFile\.ts$|^(?:ui|client)\//
  ],
  // What `jsonb` refuses is taken out in one place.
  ["JSON.stringify in a store", /\bJSON\.stringify\b/, /^(?!store\/)|^store\/Jsonb\.ts$/],
  [
    // Of another realm in a host that runs us among globals of its own: see domain/Thrown, and node:util's `types`.
    "instanceof of what Node makes",
    /\binstanceof (?:Error|Uint8Array|Float32Array|ArrayBuffer|Buffer|Map|Set|Date|Promise|RegExp)\b/,
    /^ui\//
  ],
  ["a silenced compiler", /\/\/\s*@ts-/, /^$/]
]

/** A string, a comment, a regular expression, or a character that begins or ends a template or its code. */
const token =
  /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?<=[(,=:[!&|?{};+>]\s*|\breturn\s+)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*|[`{}]/y

/** The text of a template up to its end or to code in it. */
const templateText = /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y

/** The code of a module: without comments, and without the text of strings, templates and regular expressions. */
const codeOf = (text: string): string => {
  let code = ""
  let at = 0
  /** Number of open braces in the code of each open template. */
  const braces: Array<number> = []
  const skipTemplateText = () => {
    templateText.lastIndex = at
    const [found = ""] = templateText.exec(text) ?? []
    at += found.length
    if (found.endsWith("{")) braces.push(0)
  }
  while (at < text.length) {
    token.lastIndex = at
    const [found] = token.exec(text) ?? []
    if (found === undefined) {
      code += text[at++] ?? ""
      continue
    }
    at += found.length
    const open = braces.at(-1)
    if (found === "`") {
      code += "``"
      skipTemplateText()
    } else if (found === "}" && open === 0) {
      braces.pop()
      code += " "
      skipTemplateText()
    } else if (found === "{" || found === "}") {
      code += found
      if (open !== undefined) braces[braces.length - 1] = open + (found === "{" ? 1 : -1)
    } else {
      code += /^\/[/*]/.test(found) ? " " : '""'
    }
  }
  return code
}

it("Code is what stands outside comments, strings, templates and regular expressions", () => {
  const module = [
    "/* a1 */ b1 // a2",
    'b2("a3 // \\" a4", \'a5\', /a6["\']/u)',
    "sql`a7 ${b3(`a8 ${{ b4: 1 }} a9`)} \\` a10 $ a11` + b5 // `a12",
    "const b6 = /[/a13]`/.test(b7)"
  ].join("\n")
  expect(codeOf(module).match(/\b[ab]\d+/g)).toEqual(["b1", "b2", "b3", "b4", "b5", "b6", "b7"])
})

describe("The source", () => {
  it("is there to be read", () => {
    expect(files.length).toBeGreaterThan(50)
    expect(files.flatMap((file) => importsOf(textOf(file))).length).toBeGreaterThan(200)
  })

  it("lies in folders that the design knows", () => {
    expect(files.filter((file) => zoneOf(file) === undefined)).toEqual([])
  })

  it("depends one way: every import is in the table", () => {
    const complaints = files.flatMap((file) => {
      const text = textOf(file)
      const types = typesOf(text)
      // A module that is imported twice is not erased for one of the two.
      const isType = (name: string, all: ReadonlyArray<string>) =>
        types.filter((one) => one === name).length === all.filter((one) => one === name).length
      return importsOf(text).flatMap((name, _, all) => complaint(file, name, isType(name, all)) ?? [])
    })
    expect(complaints).toEqual([])
  })

  it("names files by what they hold: no utils, helpers, types, common, index of a folder", () => {
    const vague = /(?:^|\/)(?:utils?|helpers?|types?|common|misc|shared|index)(?:\.[cm]?[jt]sx?|\/)/i
    expect(files.filter((file) => vague.test(file) && file !== "index.ts")).toEqual([])
  })

  it("has no barrel: nothing but the public entries only passes on what others export", () => {
    const passesOn = (code: string) =>
      code.replace(
        /^[ \t]*export\s*(?:type\s*)?(?:\*(?:\s*as\s+\w+)?|\{[^}]*\})\s*from\s*["'][^"']+["']\s*/gm,
        ""
      )
    const barrels = files.filter((file) => {
      const code = withoutComments(textOf(file)).trim()
      return code !== "" && passesOn(code).trim() === "" && !/^(?:index|effect|client)\.ts$/.test(file)
    })
    expect(barrels).toEqual([])
  })

  it("keeps every file at 400 lines or fewer", () => {
    const lines = (file: string) => textOf(file).split("\n").length - 1
    expect(files.filter((file) => !file.startsWith("ui/") && lines(file) > 400)).toEqual([])
  })

  it("has no folder of more than 25 files of code, and neither have its tests and benchmarks", () => {
    const beside = ["test", "bench"].flatMap((top) =>
      Fs.readdirSync(Path.join(root, "..", top), { recursive: true, encoding: "utf8" })
        .filter((name) => /\.[cm]?[jt]sx?$/.test(name))
        .map((name) => `${top}/${name.split(Path.sep).join("/")}`)
    )
    const folders = new Map<string, number>()
    for (const file of [...files, ...beside]) {
      const folder = Path.posix.dirname(file)
      folders.set(folder, (folders.get(folder) ?? 0) + 1)
    }
    expect([...folders].filter(([, count]) => count > 25)).toEqual([])
  })

  it("has no circle of imports, of types neither", () => {
    expect(circles(localImports)).toEqual([])
  })

  it("exports nothing that no other module names", () => {
    const named = (importers: ReadonlyArray<string>, name: string) => {
      const word = new RegExp(`\\b${name}\\b`)
      return importers.some((text) => word.test(text))
    }
    const unused = files
      .filter((file) => !passedOn.has(file))
      .flatMap((file) => {
        const ours = files.filter((other) => localImports.get(other)?.includes(file)).map(textOf)
        const theirs = checks.filter(({ imports }) => imports.has(file)).map(({ text }) => text)
        const tested: ReadonlyArray<string> = onlyTested[file] ?? []
        return exportsOf(textOf(file)).flatMap((name) => {
          if (named(ours, name)) return tested.includes(name) ? [`${file}: ${name} is used`] : []
          const listed = tested.includes(name) && named(theirs, name)
          return listed ? [] : [`${file}: ${name}`]
        })
      })
    expect(unused).toEqual([])
  })

  for (const [what, pattern, except] of forbidden) {
    it(`has ${what} in its one place or nowhere`, () => {
      const raw = what === "a silenced compiler"
      const offenders = files.filter((file) => {
        const text = textOf(file)
        const code = raw ? text : codeOf(text)
        return !except.test(file) && pattern.test(code)
      })
      expect(offenders).toEqual([])
    })
  }
})

const project = Path.join(root, "..")

/** What the repository holds as text, but what others wrote and what is measured or generated. */
const documents = [
  ...Fs.readdirSync(project, { encoding: "utf8" }).filter((name) =>
    Fs.statSync(Path.join(project, name)).isFile()
  ),
  ...[
    "src",
    "test",
    "migrations",
    "scripts",
    "bench",
    "bin",
    "docs",
    "deploy",
    "examples",
    "nix",
    ".ci"
  ].flatMap((folder) =>
    Fs.existsSync(Path.join(project, folder))
      ? Fs.readdirSync(Path.join(project, folder), { recursive: true, encoding: "utf8" }).map(
          (name) => `${folder}/${name}`
        )
      : []
  )
]
  .map((name) => name.split(Path.sep).join("/"))
  .filter((name) => /\.(?:[cm]?[jt]sx?|sql|md|json|nix|ya?ml|sh|css|html)$|\/run$|file$/.test(name))
  .filter((name) => name !== "package-lock.json" && !/(?:^|\/)(?:node_modules|dist)\//.test(name))

/** References to documents that readers of the repository do not have; docs/design is what it has. */
const foreignReferences = [
  /\b(?:specification|contract|findings?|guarantees?|protocols?|design)(?:\.md)?(?:,? sections?)?[,:]? G?\d/i,
  /\(G\d{1,2}[,)]/,
  /\bthe specification(?! of\b)|\bspecification's\b/i
]

/** The lines of `text` that refer to documents outside the repository. */
export const foreignLines = (text: string): ReadonlyArray<string> =>
  text.split("\n").filter((line) => foreignReferences.some((pattern) => pattern.test(line)))

describe("The repository", () => {
  it("refers to no document that it does not hold", () => {
    expect(documents.length).toBeGreaterThan(500)
    const found = documents.flatMap((name) =>
      foreignLines(Fs.readFileSync(Path.join(project, name), "utf8")).map((line) => `${name}: ${line.trim()}`)
    )
    expect(found).toEqual([])
  })

  it("names pages of docs/design that there are", () => {
    const named = documents.flatMap((name) =>
      Array.from(
        Fs.readFileSync(Path.join(project, name), "utf8").matchAll(/\bdocs\/design\/[\w./-]+\.md\b/g),
        ([page]) => page
      )
    )
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((page) => !Fs.existsSync(Path.join(project, page)))).toEqual([])
  })
})

describe("What reads the source", () => {
  it("sees every form of reference to a foreign document", () => {
    // Put together here, so that this file has none itself.
    const foreign = [
      ["specification ", "4.6"],
      ["Contract ", "5 and 11"],
      ["guarantee ", "G31"],
      ["findings ", "11"],
      ["design, ", "section 3"],
      ["as the ", "specification says"],
      ["what is deleted (", "G6, G11)"]
    ].map((pieces) => pieces.join(""))
    expect(foreign.filter((line) => foreignLines(line).length === 0)).toEqual([])
    const fine = [
      "G1 is a cell",
      "the specification of GitHub's flavour",
      "a contract",
      "guarantees three things"
    ]
    expect(fine.flatMap(foreignLines)).toEqual([])
  })

  it("sees every form of import, and none in a comment", () => {
    const text = [
      'import * as A from "a"',
      "import type { B } from 'b'",
      "import {",
      "  C,",
      "  type D",
      '} from "c"',
      'import "d"',
      'export { E } from "e"',
      'export * from "./f.ts"',
      'const G = () => import("g")',
      'const H = require("h")',
      '// import I from "i"',
      "/**",
      ' * import J from "j"',
      " */",
      'export const K = from("k")',
      'const worker = new URL("../workers/l.js", import.meta.url)'
    ].join("\n")
    expect(importsOf(text).toSorted()).toEqual([
      "../workers/l.js",
      "./f.ts",
      "a",
      "b",
      "c",
      "d",
      "e",
      "g",
      "h"
    ])
  })

  it("finds circles, and nothing else", () => {
    const graph = new Map([
      ["a", ["b", "d"]],
      ["b", ["c"]],
      ["c", ["a"]],
      ["d", ["e"]],
      ["e", []],
      ["f", ["f"]]
    ])
    expect(circles(graph)).toEqual([["a", "b", "c"], ["f"]])
  })

  it("sees exported constants and type aliases once", () => {
    expect(exportsOf("export const a = 1\nexport type a = 1\nexport interface B {}\nconst c = 1\n")).toEqual([
      "a"
    ])
  })

  it("finds every wrong direction of the table", () => {
    const wrong: ReadonlyArray<readonly [string, string]> = [
      ["domain/Ids.ts", "node:crypto"],
      ["domain/Ids.ts", "../store/Users.ts"],
      ["domain/Ids.ts", "@effect/platform"],
      ["search/Words.ts", "../capabilities/KeyStore.ts"],
      ["capabilities/KeyStore.ts", "./KeyStoreX/Sql.ts"],
      ["capabilities/KeyStore.ts", "@effect/sql/SqlClient"],
      ["capabilities/KeyStore/Sql.ts", "../Credentials/Scrypt.ts"],
      ["capabilities/KeyStore/Sql.ts", "../../store/ApiKeys.ts"],
      ["store/accounts/Users.ts", "../../usecases/Accounts.ts"],
      ["store/accounts/Users.ts", "../../capabilities/KeyStore/Sql.ts"],
      ["usecases/accounts/Keys.ts", "../../http/Envelope.ts"],
      ["usecases/accounts/Keys.ts", "../../capabilities/KeyStore/Sql.ts"],
      ["usecases/accounts/Keys.ts", "@effect/platform/HttpServerRequest"],
      ["usecases/accounts/Keys.ts", "../../app/Config.ts"],
      ["http/hosted/accounts/KeysApi.ts", "../../../usecases/Keys.ts"],
      ["http/hosted/accounts/KeysApi.ts", "./KeysHandlers.ts"],
      ["http/hosted/accounts/KeysHandlers.ts", "../agents/AgentsHandlers.ts"],
      ["http/hosted/accounts/KeysHandlers.ts", "../../../store/ApiKeys.ts"],
      ["http/hosted/accounts/SessionAuth.ts", "../../../store/Users.ts"],
      ["client.ts", "./http/Server.ts"],
      ["utils/text.ts", "effect/Effect"],
      ["ui/dashboard/api/Agents.ts", "../../../domain/Agent.ts"],
      ["ui/widget/Client.ts", "../../http/hosted/chat/SdkApi.ts"],
      ["app/Live.ts", "../main.ts"]
    ]
    for (const [file, name] of wrong) expect([file, name, complaint(file, name)]).not.toContain(undefined)
    const right: ReadonlyArray<readonly [string, string]> = [
      ["domain/Errors.ts", "@effect/platform/HttpApiSchema"],
      ["capabilities/KeyStore/Sql.ts", "../Credentials.ts"],
      ["capabilities/JobQueue/table/Claim.ts", "../Table.ts"],
      ["usecases/accounts/Keys.ts", "../../store/ApiKeys.ts"],
      ["http/hosted/accounts/KeysApi.ts", "../../Auth.ts"],
      ["http/hosted/accounts/KeysHandlers.ts", "../../../usecases/Keys.ts"],
      ["client.ts", "./http/Api.ts"],
      ["app/Live.ts", "../capabilities/KeyStore/Sql.ts"]
    ]
    for (const [file, name] of right) expect(complaint(file, name)).toBe(undefined)
  })

  it("lets the browsers' code take types of the wire, and nothing else of the server", () => {
    const api = "ui/dashboard/api/Agents.ts"
    expect(complaint(api, "../../../domain/Agent.ts", true)).toBe(undefined)
    expect(complaint(api, "../../../http/hosted/AgentsApi.ts", true)).toBe(undefined)
    expect(complaint(api, "../../../store/Agents.ts", true)).not.toBe(undefined)
    expect(complaint(api, "../../../http/hosted/AgentsHandlers.ts", true)).not.toBe(undefined)
    expect(complaint("usecases/accounts/Keys.ts", "../../http/hosted/accounts/KeysApi.ts", true)).not.toBe(
      undefined
    )
    const text = [
      'import type { A } from "a"',
      "import type {",
      "  B",
      '} from "b"',
      'export type { C } from "c"',
      'import { type D } from "d"',
      'import E, { type F } from "e"',
      'import type from "f"',
      'type G = typeof import("g")',
      '// import type { H } from "h"',
      "export type I = number",
      'import { J } from "j"'
    ].join("\n")
    expect(typesOf(text)).toEqual(["a", "b", "c"])
  })
})
