import * as fs from "node:fs"
import * as path from "node:path"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { describe, expect, it } from "vitest"
import { Variables } from "../src/app/config/Config.ts"
import { secretVariables } from "../src/app/config/SecretFiles.ts"
import { Permission } from "../src/domain/accounts/Access.ts"
import { Retention } from "../src/domain/accounts/Retention.ts"
import { AgentVersionSettings } from "../src/domain/agents/AgentVersion.ts"
import { AgentConfiguration } from "../src/domain/agents/Configuration.ts"
import { StartExperiment } from "../src/domain/agents/Experiment.ts"
import { TestCaseFields } from "../src/domain/agents/TestCase.ts"
import { ToolFailureCode } from "../src/domain/agents/ToolFailure.ts"
import { PatchWidget } from "../src/domain/agents/Widget.ts"
import { ModelCallKind } from "../src/domain/billing/ModelCall.ts"
import { ProviderProblem, RunEventType } from "../src/domain/chat/AgentRun.ts"
import { CompleteFields } from "../src/domain/chat/ChatTurn.ts"
import { EntryKind } from "../src/domain/conversations/Inbox.ts"
import { Frame } from "../src/domain/conversations/RealtimeFrame.ts"
import { errors } from "../src/domain/Errors.ts"
import { EventType } from "../src/domain/events/Webhook.ts"
import { SourceType } from "../src/domain/knowledge/Source.ts"

const root = path.join(import.meta.dirname, "..")
const readme = fs.readFileSync(path.join(root, "README.md"), "utf8")

const table = [
  "| Variable | Meaning |",
  "|---|---|",
  ...SchemaAST.getPropertySignatures(Variables.ast).map((variable) => {
    const meaning = SchemaAST.getDescriptionAnnotation(variable)
    return `| \`${String(variable.name)}\` | ${Option.getOrElse(meaning, () => "")} |`
  })
].join("\n")

const documents = fs.readdirSync(path.join(root, "docs")).filter((name) => name.endsWith(".md"))
const pages = ["README.md", ...documents.map((name) => `docs/${name}`)]
const read = (page: string) => fs.readFileSync(path.join(root, page), "utf8")

/** Links to files and headings of the project, by path from its root. */
const links = (page: string) =>
  Array.from(
    read(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)]+))?\)/gu),
    ([, target = "", fragment]) => ({
      page,
      target: target === "" ? page : path.join(path.dirname(page), target),
      fragment
    })
  )

/** The anchors of a page's headings, as Git hosts make them. */
const anchors = (page: string) =>
  Array.from(
    read(page)
      .replace(/^```[\s\S]*?^```/gmu, "")
      .matchAll(/^#+ (.+)$/gmu),
    ([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/\[([^\]]+)\]\([^)]*\)/gu, "$1")
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replace(/\s/gu, "-")
  )

describe("The README", () => {
  it("lists every configuration variable with its meaning", () => {
    const [, listed = ""] = /<!-- variables -->\n([\s\S]*?)\n?<!-- \/variables -->/u.exec(readme) ?? []
    expect(listed).toBe(table)
  })

  it("and the documentation link only to files and headings that exist", () => {
    const broken = pages.flatMap((page) =>
      links(page).filter(({ fragment, target }) => {
        if (!fs.existsSync(path.join(root, target))) return true
        return fragment !== undefined && !anchors(target).includes(fragment)
      })
    )
    expect(broken).toEqual([])
  })

  it("and the interface link only to guides and headings that exist", () => {
    const interfaceFiles = fs
      .readdirSync(path.join(root, "src/ui/dashboard"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".tsx"))
    const guides = interfaceFiles.flatMap((file) =>
      Array.from(
        read(`src/ui/dashboard/${file}`).matchAll(/\bguide="([^"#]+)(?:#([^"]+))?"/gu),
        ([, name, fragment]) => ({
          file,
          page: `docs/${name}.md`,
          fragment
        })
      )
    )
    expect(guides.length).toBeGreaterThan(20)
    expect(
      guides.filter(
        ({ fragment, page }) =>
          !pages.includes(page) || (fragment !== undefined && !anchors(page).includes(fragment))
      )
    ).toEqual([])
  })

  it("is followed by a start page that names every page of the documentation", () => {
    const named = links("docs/README.md").map(({ target }) => target)
    expect(pages.slice(1).filter((page) => page !== "docs/README.md" && !named.includes(page))).toEqual([])
  })
})

/** The text of a page of `docs`, without its snippets and the heads of its tables. */
const prose = (page: string) =>
  read(`docs/${page}.md`)
    .replace(/^```[\s\S]*?^```/gmu, "")
    .replace(/^\|.*\n(?=\|---)/gmu, "")

/** Its text below a heading, up to the next one. */
const section = (page: string, heading: string) =>
  prose(page)
    .split(new RegExp(`^#+ ${heading}$`, "mu"))[1]
    ?.split(/^#+ /mu)[0] ?? ""

const codesIn = (text: string) => Array.from(text.matchAll(/`([^`]+)`/gu), ([, code = ""]) => code)

/** What stands as code in the first column of the tables of a section. */
const firstColumn = (page: string, heading: string) =>
  Array.from(section(page, heading).matchAll(/^\|([^|]*)\|/gmu), ([, cell = ""]) => codesIn(cell)).flat()

const literalsOf = ({ ast }: Schema.Schema.AnyNoContext) =>
  (SchemaAST.isUnion(ast) ? ast.types : []).flatMap((type) =>
    SchemaAST.isLiteral(type) ? [String(type.literal)] : []
  )

const fieldsOf = <A, I, R>(schema: Schema.Schema<A, I, R>) =>
  SchemaAST.getPropertySignatures(Schema.encodedSchema(schema).ast).map(({ name }) => String(name))

/** Names that the commands of `src/app/cli` give to what they print, by a pattern with one group. */
const namesInCommands = (folder: string, pattern: RegExp) =>
  fs
    .readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => Array.from(read(path.join(folder, file)).matchAll(pattern), ([, name = ""]) => name))

const word = /^[A-Za-z]+$/u

describe("The documentation lists", () => {
  it("every error code with its status", () => {
    const rows = section("errors", "Errors and limits").matchAll(/^\| `([A-Z_]+)` \| (\d+) \|/gmu)
    expect(Object.fromEntries(Array.from(rows, ([, code, status]) => [code, Number(status)]))).toEqual(
      Object.fromEntries(
        Object.entries(errors).map(([code, error]) => [code, HttpApiSchema.getStatusError(error)])
      )
    )
  })

  const lists: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
    [
      "the fields of a turn",
      firstColumn("chat", "Send a message"),
      [...Object.keys(CompleteFields), "id", "messages", "trigger"]
    ],
    ["the types of sources", firstColumn("sources", "Add a source"), literalsOf(SourceType)],
    ["the types of events", firstColumn("events", "Types"), EventType.literals],
    [
      "the events of a trace",
      firstColumn("traces", "Read a trace").filter((name) => name.includes(".")),
      RunEventType.literals
    ],
    [
      "the failures of providers",
      firstColumn("traces", "Why a turn failed").filter((name) => /^[a-z_]+$/u.test(name)),
      ProviderProblem.literals
    ],
    [
      "the frames of a socket",
      firstColumn("realtime", "Frames"),
      Frame.members.flatMap(({ fields }) => fields.type.literals)
    ],
    [
      "the settings of a version",
      codesIn(/A version records[\s\S]*?The name is included/u.exec(prose("versions"))?.[0] ?? ""),
      fieldsOf(AgentVersionSettings)
    ],
    ["the fields of an agent in a file", firstColumn("config", "The file"), fieldsOf(AgentConfiguration)],
    ["the settings of a widget", firstColumn("widget", "Its settings by HTTP"), fieldsOf(PatchWidget)],
    ["the fields of a test case", firstColumn("evaluation", "The file"), fieldsOf(TestCaseFields)],
    [
      "the fields of an experiment",
      firstColumn("evaluation", "Experiments").filter((name) => word.test(name)),
      fieldsOf(StartExperiment)
    ],
    ["the limits of retention", firstColumn("privacy", "Retention"), fieldsOf(Retention)],
    ["the kinds of other model calls", firstColumn("usage", "Other model calls"), ModelCallKind.literals]
  ]
  it.each(lists)("%s", (_, listed, known) => {
    expect([...new Set(listed)].toSorted()).toEqual([...known].toSorted())
  })

  const named: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
    ["permission", section("authentication", "Permissions"), literalsOf(Permission)],
    ["code of a failed tool", prose("tools"), ToolFailureCode.literals],
    ["variable that a file may hold", section("containers", "Secrets"), secretVariables],
    ["kind of an entry of the inbox", section("conversations", "The team's inbox"), EntryKind.literals],
    [
      "check of the doctor",
      section("command-line", "Doctor"),
      namesInCommands("src/app/cli/doctor", /\b(?:ok|warning|problem|check =)\(?\s*"([a-z ]+)"/gu)
    ],
    [
      "command",
      prose("command-line").replaceAll(/`spoke ([a-z-]+(?: [a-z]+)?)[^`]*`/gu, "`$1`"),
      namesInCommands("src/app/cli", /\bcommand\(\s*"([a-z -]+)"/gu)
    ]
  ]
  it.each(named)("every %s", (_, text, known) => {
    expect(known.length).toBeGreaterThan(5)
    expect(known.filter((name) => !codesIn(text).includes(name))).toEqual([])
  })
})
