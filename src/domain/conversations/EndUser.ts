/** End users, the people who write to the agents, as a tenant's admins see them. */
import * as Schema from "effect/Schema"
import { EndUserId } from "../Ids.ts"

export const EndUser = Schema.Struct({
  id: EndUserId,
  /** The caller's own id, if it gave one. */
  externalId: Schema.NullOr(Schema.String),
  conversations: Schema.Int,
  createdAt: Schema.DateTimeUtc
}).annotations({ identifier: "EndUser" })
export type EndUser = typeof EndUser.Type
