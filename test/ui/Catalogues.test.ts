import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"
import { processStopped, ProviderProblem, RunEventType } from "../../src/domain/chat/AgentRun.ts"
import * as Errors from "../../src/domain/Errors.ts"
import { skipMessages } from "../../src/readers/Visits.ts"

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

describe("The German catalogue of the dashboard", () => {
  it("has a sentence for every error code", () => {
    const codes = Object.values(Errors).flatMap((one) =>
      typeof one === "function" && "_tag" in one && typeof one._tag === "string" ? [one._tag] : []
    )
    expect(codes.length).toBeGreaterThan(25)
    expect(missing(codes, keysIn(`${dashboard}/text/codes.ts`, "germanCodes"))).toEqual([])
    // A code stands for several limits, so none is named: a source may be larger than a picture in a conversation.
    expect(read(`${dashboard}/text/codes.ts`)).not.toMatch(/\d+ MB/u)
  })

  it("has a sentence for every reason for which something was not read", () => {
    const readers = [...filesIn("src/readers"), ...filesIn("src/capabilities"), ...filesIn("src/usecases")]
    const errors = found(
      readers.filter((file) => /ReaderError|ExtractionError|IngestionError/u.test(read(file))),
      /(?:\bcode: |\b(?:permanentError|error)\(\s*)"([a-z_]+)"/gu
    )
    expect(errors.size).toBeGreaterThan(15)
    const german = keysIn(`${dashboard}/pages/sources/ReadingError.tsx`, "german")
    expect(missing([...errors, ...Object.keys(skipMessages)], german)).toEqual([])
  })

  it("has a name for every action of the audit trail and every event of a trace", () => {
    const actions = found(
      [...filesIn("src/http"), ...filesIn("src/usecases")],
      /(?:\.(?:change|record)\([^")]*(?:\([^)]*\))?[^")]*|\b(?:audited|removal)\(\s*|(?<=\baudited\(\s*\w+ \? (?:"[a-z_.]+" : )?)|action: |action = )"([a-z_]+\.[a-z_]+)"/gu
    )
    for (const event of RunEventType.literals) actions.delete(event)
    expect(actions.size).toBeGreaterThan(20)
    expect(missing(actions, keysIn(`${dashboard}/pages/audit/actions.ts`, "actions"))).toEqual([])
    const events = keysIn(`${dashboard}/components/replies/Trace.tsx`, "germanLabels")
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
      const translated = new Set([...catalogue.matchAll(/^ {4}(\w+):/gmu)].map(([, name = ""]) => name))
      expect(missing(reasons, translated)).toEqual([])
    }
  })

  it("has all texts of the dashboard: no element has its own text", () => {
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
