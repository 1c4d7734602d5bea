/** Source type IMAGE: one picture, uploaded or fetched. */
import type { FileConfig, UploadedFileConfig } from "../domain/knowledge/Source.ts"
import * as File from "./File.ts"
import type { Reader } from "./Reader.ts"

/** As a FILE: whether something is a picture is told by its bytes and not by what it was announced as. */
export const reader: Reader<typeof FileConfig.Type | typeof UploadedFileConfig.Type> = File.reader
