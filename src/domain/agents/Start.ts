/** The guided start: the setup progress of an agent, and questions that its own content answers. */
import * as Schema from "effect/Schema"
import { AgentId } from "../Ids.ts"
import { Count } from "../Count.ts"

/** The only source of the sample agent. The sample agent is an example; a team sets up its own. */
export const sampleSource = { type: "BULK_UPLOAD", name: "Spoke documentation" } as const

const Named = Schema.Struct({ id: AgentId, name: Schema.String })

/** Everything is derived from what exists, except for `dismissed`. */
export const Start = Schema.Struct({
  /** The named agent, else the newest one that is not the sample; null where there is none. */
  agent: Schema.NullOr(Named),
  /** The agent of the first start, while its only source is the documentation of Spoke. */
  sample: Schema.NullOr(Named),
  sources: Count,
  /** Pages and documents that search can find. */
  documents: Count,
  /** The agent has answered a question in the dashboard. */
  tried: Schema.Boolean,
  /** The widget has been set up. */
  widget: Schema.Boolean,
  finished: Schema.Boolean,
  /** The team has dismissed the start page. */
  dismissed: Schema.Boolean
})
export type Start = typeof Start.Type

export const PutStart = Schema.Struct({ dismissed: Schema.Boolean })

export const Questions = Schema.Struct({ questions: Schema.Array(Schema.String) })
