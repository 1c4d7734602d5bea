/** Source type IMAGE: one picture, uploaded or fetched. */
import type { FileConfig, UploadedFileConfig } from "../domain/knowledge/Source.ts"
import * as File from "./File.ts"
import type { Reader } from "./Reader.ts"

/** Same as FILE: the bytes decide whether something is an image, not the source type. */
export const reader: Reader<typeof FileConfig.Type | typeof UploadedFileConfig.Type> = File.reader
