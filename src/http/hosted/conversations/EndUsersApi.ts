/** End users and what is stored about them, for the dashboard's admins. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { ExternalEndUserId } from "../../../domain/chat/ChatTurn.ts"
import { EndUser } from "../../../domain/conversations/EndUser.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { EndUserId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { optional } from "../../../domain/Optional.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success, textBody } from "../../Envelope.ts"

const path = Schema.Struct({ id: EndUserId })

const Lines = textBody("application/x-ndjson").annotations({
  description: 'One JSON object a line; the last is `{type: "end", lines}`.'
})

export const EndUserPage = Schema.Struct({ endUsers: Schema.Array(EndUser), nextCursor })

/** Newest first. `externalId` must match exactly. */
const list = HttpApiEndpoint.get("list", "/end-users")
  .setUrlParams(
    Schema.Struct({
      ...pageParams.fields,
      externalId: optional(ExternalEndUserId)
    })
  )
  .addSuccess(success(EndUserPage))
  .addError(failure(ValidationError))

/** Everything that is stored about the person. Nothing is returned when the audit entry cannot be written. */
const exported = HttpApiEndpoint.get("export", "/end-users/:id/export")
  .setPath(path)
  .addSuccess(Lines)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

/** Permanent. 409 while a turn of the person runs. */
const remove = HttpApiEndpoint.del("remove", "/end-users/:id")
  .setPath(path)
  .addSuccess(success(Schema.Struct({ id: EndUserId, deleted: Schema.Literal(true) })))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))

const endUsers = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(exported).add(remove).annotateEndpoints(RequiredRole, "admin")

export class EndUsersApi extends endUsers("endUsers").prefix("/api").middleware(SessionAuth) {}

export class ManagedEndUsersApi extends managed(endUsers("managedEndUsers"), "conversations") {}
