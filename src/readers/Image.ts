/** Source type IMAGE: needs text recognition, which this installation does not have. */
import * as Stream from "effect/Stream"
import type { FileConfig, UploadedFileConfig } from "../domain/Source.ts"
import { type Reader, ReaderError } from "./Reader.ts"

export const reader: Reader<typeof FileConfig.Type | typeof UploadedFileConfig.Type> = {
  read: () =>
    Stream.fail(
      new ReaderError({
        code: "ocr_unavailable",
        message:
          "Text in images is not recognised here. Add the text as a FILE source instead: a PDF with a text layer, Markdown or plain text.",
        retryable: false
      })
    )
}
