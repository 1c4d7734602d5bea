/** The guided start: how far an agent has come, and questions that its own content answers. */
import * as Schema from "effect/Schema"
import { AgentId } from "../Ids.ts"

/** The only source of the agent that the first start makes: that agent is looked at, and not set up. */
export const sampleSource = { type: "BULK_UPLOAD", name: "Spoke documentation" } as const

const Count = Schema.Int.pipe(Schema.nonNegative())
const Named = Schema.Struct({ id: AgentId, name: Schema.String })

/** Everything is derived from what exists, except for `dismissed`. */
export const Start = Schema.Struct({
  /** The agent that was named, else the newest that is not the sample; null where there is none. */
  agent: Schema.NullOr(Named),
  /** The agent of the first start, as long as it knows nothing but the documentation of Spoke. */
  sample: Schema.NullOr(Named),
  sources: Count,
  /** Pages and documents that can be found. */
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
