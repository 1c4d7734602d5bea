/** The reader of each source type, except CONNECTOR, whose readers are registered by name. */
import type { SourceType, StoredSourceConfig } from "../domain/knowledge/Source.ts"
import * as BulkUpload from "./BulkUpload.ts"
import * as File from "./File.ts"
import * as Qa from "./Qa.ts"
import type { Reader, ReadOptions } from "./Reader.ts"
import * as Sitemap from "./Sitemap.ts"
import * as Text from "./Text.ts"
import * as Url from "./Url.ts"

export type OwnType = Exclude<SourceType, "CONNECTOR">

/** The config of each source type. */
type Configs = {
  [Type in OwnType]: Extract<StoredSourceConfig, { readonly type: Type }>["config"]
}
type Readers = { readonly [Type in OwnType]: Reader<Configs[Type]> }

export const readers: Readers = {
  URL: Url.reader,
  SITEMAP: Sitemap.reader,
  FILE: File.reader,
  IMAGE: File.reader,
  BULK_UPLOAD: BulkUpload.reader,
  TEXT: Text.reader,
  QA: Qa.reader
}

/** The documents of a source, at most `maxDocuments`, each with a unique `uri`. */
export const read = <Type extends OwnType>(
  source: { readonly type: Type; readonly config: Configs[Type] },
  options: ReadOptions
) => readers[source.type].read(source.config, options)
