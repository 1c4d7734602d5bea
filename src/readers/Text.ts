/** Source type TEXT: a text in the config. */
import * as Stream from "effect/Stream"
import type { TextConfig } from "../domain/knowledge/CuratedSource.ts"
import { anyHeading, parseMarkdown } from "../search/MarkdownDocument.ts"
import type { Reader } from "./Reader.ts"

/** The URI of the only document of each such source. */
export const textUri = "text:"
const maxTitleLength = 200

export const reader: Reader<typeof TextConfig.Type> = {
  read: ({ format = "markdown", text: given }) => {
    const { text, title } =
      format === "markdown" ? parseMarkdown(given, anyHeading) : { text: given, title: "" }
    // A text of front matter alone is read as it is.
    const content = text.trim() === "" ? given : text
    const [firstLine = ""] = content.trimStart().split("\n", 1)
    return Stream.make({
      uri: textUri,
      title: (title || firstLine).trim().slice(0, maxTitleLength).toWellFormed(),
      format,
      content
    })
  }
}
