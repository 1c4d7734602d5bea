/** A channel's message as the text that is stored, shown and put to the model. */
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { InboundMedia, InboundMessage } from "../../domain/channels/Channel.ts"

/** Characters that are kept: as many as one message of the API may have. */
const maxCharacters = 32_000

const named = ({ fileName, kind }: InboundMedia): string =>
  fileName === undefined || fileName.trim() === "" ? `[${kind}]` : `[${kind}: ${fileName.trim()}]`

/** What was written; files that came with it stand in brackets where nothing else says that there are any. */
export const of = ({ kind, media, text }: InboundMessage): string => {
  const written = text.trim()
  if (written !== "") return written.slice(0, maxCharacters).toWellFormed()
  const files = media.map(named).join(" ")
  return files === ""
    ? `[${kind === "echo" ? "message" : kind}]`
    : files.slice(0, maxCharacters).toWellFormed()
}

/** What stands for files that are sent without a word. */
export const ofFiles = (files: ReadonlyArray<Pick<StoredAttachment, "mimeType" | "name">>): string =>
  files
    .map(({ mimeType, name }) =>
      named({ kind: mimeType.startsWith("image/") ? "image" : "document", fileName: name })
    )
    .join(" ")
