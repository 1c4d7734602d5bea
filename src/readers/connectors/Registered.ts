/** The built-in readers. */
import * as Layer from "effect/Layer"
import { registered, type SourceReader, SourceReaders } from "../../capabilities/SourceReaders.ts"
import { confluence } from "./Confluence.ts"
import { feed } from "./Feed.ts"
import { notion } from "./Notion.ts"
import { repository } from "./Repository.ts"
import { zendesk } from "./Zendesk.ts"

const builtIn: ReadonlyArray<SourceReader> = [feed, repository, zendesk, notion(), confluence]

/** The built-in readers and `others`, which replace built-in ones of the same name. */
export const layerWith = (others: Iterable<SourceReader>): Layer.Layer<SourceReaders> =>
  Layer.succeed(SourceReaders, registered([...builtIn, ...others]))

export const layer = layerWith([])
