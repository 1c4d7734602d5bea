/** Converts Notion blocks to Markdown. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

export interface Block {
  readonly type: string
  /** The value under the block's type. */
  readonly value: unknown
  readonly children: ReadonlyArray<Block>
}

const Run = Schema.Struct({
  plain_text: Schema.String,
  href: Schema.optional(Schema.NullOr(Schema.String)),
  annotations: Schema.optional(
    Schema.Struct({
      bold: Schema.optional(Schema.Boolean),
      italic: Schema.optional(Schema.Boolean),
      code: Schema.optional(Schema.Boolean)
    })
  )
})
const Runs = Schema.Array(Run)

const Value = Schema.Struct({
  rich_text: Schema.optional(Runs),
  caption: Schema.optional(Runs),
  checked: Schema.optional(Schema.Boolean),
  language: Schema.optional(Schema.String),
  url: Schema.optional(Schema.String),
  expression: Schema.optional(Schema.String),
  cells: Schema.optional(Schema.Array(Runs))
})
const decode = Schema.decodeUnknownOption(Value)

/** White space of the text stays outside: within marks, it would make them part of the text. */
const inline = ({ annotations, href, plain_text: text }: typeof Run.Type): string => {
  const words = text.trim()
  if (words === "") return text
  const marked =
    annotations?.code === true
      ? `\`${words}\``
      : annotations?.bold === true
        ? `**${words}**`
        : annotations?.italic === true
          ? `*${words}*`
          : words
  const linked = typeof href === "string" && /^https?:/u.test(href) ? `[${marked}](${href})` : marked
  const start = text.indexOf(words)
  return text.slice(0, start) + linked + text.slice(start + words.length)
}

const textOf = (runs: typeof Runs.Type = []): string => runs.map(inline).join("")
const plainOf = (runs: typeof Runs.Type = []): string => runs.map(({ plain_text }) => plain_text).join("")

const indented = (text: string): string => text.replaceAll(/^(?=.)/gmu, "  ")

const rowOf = (cells: ReadonlyArray<typeof Runs.Type>): string =>
  `| ${cells.map((cell) => textOf(cell).replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`

const tableOf = (rows: ReadonlyArray<Block>): string => {
  const cells = rows.map(({ value }) => Option.getOrUndefined(decode(value))?.cells ?? [])
  const [head = [], ...rest] = cells
  return [rowOf(head), `|${" --- |".repeat(head.length)}`, ...rest.map(rowOf)].join("\n")
}

const marks: Readonly<Record<string, string>> = {
  heading_1: "# ",
  heading_2: "## ",
  heading_3: "### ",
  bulleted_list_item: "- ",
  numbered_list_item: "1. ",
  toggle: "- ",
  quote: "> ",
  callout: "> "
}
const lists = new Set(["bulleted_list_item", "numbered_list_item", "to_do", "toggle"])

/** The fence is longer than those in the code. */
const fenced = (code: string, language = ""): string => {
  const longestRun = (code.match(/`{3,}/gu) ?? []).reduce((max, { length }) => Math.max(max, length), 2)
  const fence = "`".repeat(longestRun + 1)
  return `${fence}${language}\n${code}\n${fence}`
}

const blockText = (block: Block): string => {
  const { type } = block
  if (type === "divider") return "---"
  if (type === "table") return tableOf(block.children)
  const value = Option.getOrUndefined(decode(block.value))
  if (value === undefined) return ""
  if (type === "code") return fenced(plainOf(value.rich_text), value.language)
  if (type === "equation") return value.expression ?? ""
  if (type === "to_do") return `- [${value.checked === true ? "x" : " "}] ${textOf(value.rich_text)}`
  const text = textOf(value.rich_text ?? value.caption)
  if (text === "") return /^https?:/u.test(value.url ?? "") ? `<${value.url ?? ""}>` : ""
  return `${marks[type] ?? ""}${text}`
}

/** List items are consecutive lines; everything else is a paragraph. */
export const markdownOfBlocks = (blocks: ReadonlyArray<Block>): string => {
  let text = ""
  let before = ""
  for (const block of blocks) {
    const ownText = blockText(block)
    const children = block.type === "table" ? "" : markdownOfBlocks(block.children)
    const isList = lists.has(block.type)
    const markdown = [ownText, isList ? indented(children) : children]
      .filter((part) => part !== "")
      .join(isList ? "\n" : "\n\n")
    if (markdown === "") continue
    text += text === "" ? markdown : `${isList && before === block.type ? "\n" : "\n\n"}${markdown}`
    before = block.type
  }
  return text
}
