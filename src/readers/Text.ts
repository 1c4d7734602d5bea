/** Source type TEXT: a text in the config. */
import * as Stream from "effect/Stream"
import type { TextConfig } from "../domain/knowledge/CuratedSource.ts"
import type { Reader } from "./Reader.ts"

/** The URI of the only document of each such source. */
export const textUri = "text:"
const maxTitleLength = 200

/** The first heading of Markdown, else the first line. */
const titleOf = (text: string, format: "markdown" | "text"): string => {
  const heading = format === "markdown" ? /^ {0,3}#{1,6}[ \t]+(\S.*)$/mu.exec(text)?.[1] : undefined
  const [first = ""] = text.trimStart().split("\n", 1)
  return (heading ?? first).trim().slice(0, maxTitleLength).toWellFormed()
}

export const reader: Reader<typeof TextConfig.Type> = {
  read: ({ format = "markdown", text }) =>
    Stream.make({ uri: textUri, title: titleOf(text, format), format, content: text })
}
