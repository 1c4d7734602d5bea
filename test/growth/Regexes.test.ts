/** Every regular expression of the source, matched step by step against texts made to let it backtrack. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { transformSync } from "esbuild"
import { parseAst } from "vite"
import { describe, expect, it } from "vitest"
import { attackOn } from "./Backtracking.ts"
import { pageFiles } from "../../src/ui/dashboard/pageFiles.ts"

const root = Path.join(import.meta.dirname, "../../src")

interface Found {
  readonly file: string
  readonly source: string
  readonly flags: string
}

const found: Array<Found> = []
/** Files that put some together. */
const dynamic = new Set<string>()

const visit = (file: string, node: unknown): void => {
  if (Array.isArray(node)) for (const each of node) visit(file, each)
  if (typeof node !== "object" || node === null || !("type" in node)) return
  if ("regex" in node && typeof node.regex === "object" && node.regex !== null) {
    const { flags, pattern } = node.regex as { readonly flags: string; readonly pattern: string }
    found.push({ file, source: pattern, flags })
  }
  if (node.type === "NewExpression" && "callee" in node) {
    const callee = node.callee as { readonly name?: string }
    if (callee.name === "RegExp") dynamic.add(file)
  }
  for (const member of Object.values(node)) visit(file, member)
}

for (const file of Fs.readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted()) {
  // A slow expression in a browser harms only its own user.
  if (!/\.tsx?$/.test(file) || file.startsWith("ui/")) continue
  const { code } = transformSync(Fs.readFileSync(Path.join(root, file), "utf8"), {
    loader: "ts",
    charset: "utf8"
  })
  visit(file, parseAst(code))
}

const settings = "what an operator writes"

/** Whose texts no caller makes. */
const spared: Readonly<Record<string, string>> = {
  "app/config/ConfigValues.ts /\\/+$/": settings,
  "app/config/ConfigValues.ts /^s3:\\/\\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\\/([A-Za-z0-9._/-]*?))?\\/*$/u":
    settings,
  "app/cli/Connection.ts /\\/+$/u": settings,
  "app/cli/Import.ts /\\/+$/u": settings,
  "app/moves/Side.ts /\\/+$/u": settings,
  "app/cli/Ingest.ts /sitemap[^/]*\\.xml(\\.gz)?($|\\?)/iu": settings,
  "capabilities/Embedder/OpenAiWire.ts /\\/+$/": settings,
  "capabilities/ModelRuntime/ProviderStream.ts /\\/+$/": settings,
  [String.raw`store/database/SqlText.ts /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<tag>\$(?:[a-z_]\w*)?\$)[\s\S]*?\k<tag>|[\s\S]/giu`]:
    "the migrations of the project",
  "client/Transport.ts /\\/+$/u": "the address that an application is written with"
}

/** Those that are put together while the program runs, as they then are. */
const instances: Readonly<Record<string, ReadonlyArray<RegExp>>> = {
  "app/cli/doctor/Services.ts": [/^redis_version:(\S+)/mu],
  "capabilities/GroundingChecker/Scripts.ts": [/[\p{Script=Hangul}]/gu],
  "domain/Xml.ts": [
    /\sr[ \t]?=[ \t]?(?:"([^"]{0,4000})"|'([^']{0,4000})')/,
    /\s[\w.-]{1,40}:id[ \t]?=[ \t]?(?:"([^"]{0,4000})"|'([^']{0,4000})')/
  ],
  "http/hosted/chat/Assets.ts": pageFiles.map(([pattern]) => pattern),
  "http/server/Multipart.ts": [/;\s*name="((?:[^"\\]|\\.)*)"/iu],
  "store/database/StatementEffects.ts": [
    /^alter table (?:if exists )?(?:only )?(?<table>(?:"[^"]+"|[a-z_][\w$]*)(?:\.(?:"[^"]+"|[a-z_][\w$]*))?)/u
  ],
  "domain/chat/Notices.ts": [/(?<![\p{L}\p{M}])(?:ich|und|der)(?![\p{L}\p{M}])/giu]
}

const name = ({ file, flags, source }: Found) => `${file} /${source}/${flags}`

for (const [file, all] of Object.entries(instances))
  for (const { flags, source } of all) found.push({ file, source, flags })

describe("A regular expression takes at most twice the steps for twice the text:", () => {
  for (const [told, { flags, source }] of new Map(found.map((each) => [name(each), each]))) {
    it(told, () => {
      const attack = attackOn(source, flags)
      // What needs no exception any more has none.
      if (told in spared) expect(attack).not.toBeNull()
      else expect(attack).toBeNull()
    })
  }
})

describe("What tells so", () => {
  const bad = [
    /\s+$/,
    /(a+)+b/,
    /(?:a|a)*b/,
    /^\s*\s*x/,
    /\[[^\]]*\]\(/g,
    /\*\*(?=\S)(.+?)(?<=\S)\*\*/g,
    /\]\([^)\s]*(?:\s[^)]*)?\)/g
  ]
  const good = [/^\s+/, /\s+/g, /"[^"]*"/g, /^(?:[^"\\]|\\.)*$/, /\[[^[\]]*\]\(/g, /\[[^\]]{0,100}\]/g]
  for (const { flags, source } of bad) {
    it(`finds what grows: ${source}`, () => expect(attackOn(source, flags)).not.toBeNull())
  }
  for (const { flags, source } of good) {
    it(`leaves alone what does not: ${source}`, () => expect(attackOn(source, flags)).toBeNull())
  }
  it("knows every expression that is put together while the program runs", () => {
    expect([...dynamic].toSorted()).toEqual(Object.keys(instances).toSorted())
  })
})
