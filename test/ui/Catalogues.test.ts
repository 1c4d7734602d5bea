import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { describe, expect, it } from "vitest"
import { allows, Permission, Role } from "../../src/domain/Access.ts"
import { processStopped, ProviderProblem, RunEventType } from "../../src/domain/AgentRun.ts"
import { MessagingChannel } from "../../src/domain/Channel.ts"
import { ConversationChannel, ConversationState } from "../../src/domain/Conversation.ts"
import { CrawlOutcome } from "../../src/domain/Crawl.ts"
import * as Errors from "../../src/domain/Errors.ts"
import { SourceType } from "../../src/domain/Source.ts"
import { skipWords } from "../../src/readers/Visits.ts"

const root = Path.resolve(import.meta.dirname, "../..")
const read = (name: string) => Fs.readFileSync(Path.join(root, name), "utf8")

const filesIn = (folder: string): ReadonlyArray<string> =>
  Fs.readdirSync(Path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/u.test(name))
    .map((name) => `${folder}/${name}`)

/** What the pattern's group finds in any of the files. */
const found = (files: ReadonlyArray<string>, pattern: RegExp) =>
  new Set(files.flatMap((file) => [...read(file).matchAll(pattern)].map(([, name = ""]) => name)))

/** The keys of a record, in a file that is written for browsers. */
const keysIn = (file: string, name: string) => {
  const [, text = ""] = new RegExp(`const ${name}: [^\n]*= \\{([\\s\\S]*?)\\n\\}`, "u").exec(read(file)) ?? []
  return new Set([...text.matchAll(/^ {2}"?([\w.]+)"?:/gmu)].map(([, key = ""]) => key))
}

const missing = (wanted: Iterable<string>, had: ReadonlySet<string>) =>
  [...wanted].filter((one) => !had.has(one))

const dashboard = "src/ui/dashboard"

/** The texts in a list, in a file that is written for browsers. */
const listIn = (file: string, name: string) => {
  const pattern = new RegExp(`const ${name}\\b[^=]*= \\[([^\\]]*)\\]`, "u")
  const [, text = ""] = pattern.exec(read(`${dashboard}/${file}`)) ?? []
  return Array.from(text.matchAll(/"([^"]+)"/gu), ([, one = ""]) => one).toSorted()
}

/** What a schema of names accepts. */
const namesOf = ({ ast }: { readonly ast: AST.AST }): ReadonlyArray<string> =>
  AST.isUnion(ast)
    ? ast.types.flatMap((type) => (AST.isLiteral(type) ? [String(type.literal)] : [])).toSorted()
    : []

describe("A list of the dashboard", () => {
  const lists = [
    ["api/Sources.ts", "sourceTypes", SourceType],
    ["api/Sources.ts", "outcomes", CrawlOutcome],
    ["api/Conversations.ts", "channels", ConversationChannel],
    ["api/Conversations.ts", "states", ConversationState],
    ["api/Channels.ts", "providers", MessagingChannel],
    ["pages/team/Team.tsx", "roles", Role]
  ] as const
  for (const [file, name, schema] of lists) {
    it(`has what the service has: ${name}`, () => {
      expect(namesOf(schema).length).toBeGreaterThan(1)
      expect(listIn(file, name)).toEqual(namesOf(schema))
    })
  }

  it("offers every source type: `BULK_UPLOAD` as a ZIP that is uploaded", () => {
    const kinds = listIn("pages/sources/AddSource.tsx", "kinds")
    expect(missing(namesOf(SourceType), new Set(kinds))).toEqual(["BULK_UPLOAD"])
    expect(kinds).toContain("bulk-upload")
  })

  it("offers every permission under one of its names, but those of skills, which the dashboard does not have", () => {
    const offered = listIn("api/Keys.ts", "permissions")
    const held = namesOf(Permission)
      .filter(Schema.is(Permission))
      .filter((one) => offered.includes(one))
    expect(held).toHaveLength(offered.length)
    const left = namesOf(Permission)
      .filter(Schema.is(Permission))
      .filter((one) => one !== "*" && !held.some((has) => allows([has], one)))
    expect(left).toEqual(["skill_fetch", "skills:read"])
    for (const one of held) {
      expect(found([`${dashboard}/pages/agents/Keys.tsx`], /\["([^"]+)", t\.\w+, t\.\w+\]/gu)).toContain(one)
    }
  })
})

describe("The German catalogue of the dashboard", () => {
  it("has a sentence for every error code", () => {
    const codes = Object.values(Errors).flatMap((one) =>
      typeof one === "function" && "_tag" in one && typeof one._tag === "string" ? [one._tag] : []
    )
    expect(codes.length).toBeGreaterThan(25)
    expect(missing(codes, keysIn(`${dashboard}/text/codes.ts`, "germanCodes"))).toEqual([])
  })

  it("has a sentence for every reason for which something was not read", () => {
    const readers = [...filesIn("src/readers"), ...filesIn("src/capabilities"), ...filesIn("src/usecases")]
    const errors = found(
      readers.filter((file) => /ReaderError|ExtractionError|IngestionError/u.test(read(file))),
      /(?:\bcode: |\berror\(\s*)"([a-z_]+)"/gu
    )
    expect(errors.size).toBeGreaterThan(15)
    const german = keysIn(`${dashboard}/pages/sources/Why.tsx`, "german")
    expect(missing([...errors, ...Object.keys(skipWords)], german)).toEqual([])
  })

  it("has a name for every deed of the audit trail and every event of a trace", () => {
    const deeds = found(
      [...filesIn("src/http"), ...filesIn("src/usecases")],
      /(?:\.(?:change|record)\([^")]*(?:\([^)]*\))?[^")]*|action: )"([a-z_]+\.[a-z_]+)"/gu
    )
    for (const event of RunEventType.literals) deeds.delete(event)
    expect(deeds.size).toBeGreaterThan(20)
    expect(missing(deeds, keysIn(`${dashboard}/pages/audit/deeds.ts`, "deeds"))).toEqual([])
    const events = keysIn(`${dashboard}/components/Trace.tsx`, "germanLabels")
    expect(missing(RunEventType.literals, events)).toEqual([])
  })

  it("has a sentence for every reason for which a turn failed", () => {
    const reasons = [
      ...ProviderProblem.literals,
      "TURN_FAILED",
      "RUNTIME_TIMEOUT",
      "TAKEN_OVER",
      processStopped
    ]
    const [, english = "", german = ""] = read(`${dashboard}/text/useFailure.ts`).split(/^ {2}\{$/mu)
    for (const catalogue of [english, german]) {
      const told = new Set([...catalogue.matchAll(/^ {4}(\w+):/gmu)].map(([, name = ""]) => name))
      expect(missing(reasons, told)).toEqual([])
    }
  })

  it("is the only place where the dashboard's own sentences stand: none is written into an element", () => {
    const loose = filesIn(dashboard)
      .filter((file) => file.endsWith(".tsx"))
      .flatMap((file) =>
        [
          ...read(file).matchAll(
            />\s*([A-Z][a-z]+(?: [a-z]+)+)[^<{]*<\/|(?:label|title|placeholder|help)="([^"]+ [^"]+)"/gu
          )
        ].map(([text]) => `${file}: ${text}`)
      )
    expect(loose).toEqual([])
  })
})
