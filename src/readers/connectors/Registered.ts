/** The readers that come with Spoke: the first registrations. */
import * as Layer from "effect/Layer"
import { registered, type SourceReader, SourceReaders } from "../../capabilities/SourceReaders.ts"
import { confluence } from "./Confluence.ts"
import { feed } from "./Feed.ts"
import { notion } from "./Notion.ts"
import { repository } from "./Repository.ts"
import { zendesk } from "./Zendesk.ts"

const builtIn: ReadonlyArray<SourceReader> = [feed, repository, zendesk, notion(), confluence]

/** Spoke's own readers and `others`; one of the same name takes the place of ours. */
export const layerWith = (others: Iterable<SourceReader>): Layer.Layer<SourceReaders> =>
  Layer.succeed(SourceReaders, registered([...builtIn, ...others]))

export const layer = layerWith([])
