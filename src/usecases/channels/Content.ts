/** The text of a channel message, as it is stored, displayed and sent to the model. */
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { InboundMedia, InboundMessage } from "../../domain/channels/Channel.ts"

/** Maximum characters that are kept: the same limit as for one API message. */
const maxCharacters = 32_000

const mediaLabel = ({ fileName, kind }: InboundMedia): string =>
  fileName === undefined || fileName.trim() === "" ? `[${kind}]` : `[${kind}: ${fileName.trim()}]`

/** The written text. Files are named in brackets where no text mentions them. */
export const textOf = ({ kind, media, text }: InboundMessage): string => {
  const written = text.trim()
  if (written !== "") return written.slice(0, maxCharacters).toWellFormed()
  const files = media.map(mediaLabel).join(" ")
  return files === ""
    ? `[${kind === "echo" ? "message" : kind}]`
    : files.slice(0, maxCharacters).toWellFormed()
}

/** Text in place of files that were sent without any. */
export const textOfFiles = (files: ReadonlyArray<Pick<StoredAttachment, "mimeType" | "name">>): string =>
  files
    .map(({ mimeType, name }) =>
      mediaLabel({ kind: mimeType.startsWith("image/") ? "image" : "document", fileName: name })
    )
    .join(" ")
