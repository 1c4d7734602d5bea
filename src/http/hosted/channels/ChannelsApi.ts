/** The messaging channels of an agent, for the dashboard. Access tokens can be written but not read. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  ChannelConfiguration,
  CreateChannel,
  PatchChannel
} from "../../../domain/channels/ChannelConfiguration.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId, ChannelId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

const One = success(Schema.Struct({ channel: ChannelConfiguration }))
export const ChannelPage = Schema.Struct({ channels: Schema.Array(ChannelConfiguration), nextCursor })
const agentPath = Schema.Struct({ id: AgentId })
const channelPath = Schema.Struct({ id: ChannelId })

/** Oldest first. */
const list = HttpApiEndpoint.get("list", "/agents/:id/channels")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(ChannelPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** 409 when the account already has an active configuration. */
const create = HttpApiEndpoint.post("create", "/agents/:id/channels")
  .setPath(agentPath)
  .setPayload(CreateChannel)
  .addSuccess(One, { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Omitted fields stay, including the token. `If-Match` has the version that the change is based on. */
const patch = HttpApiEndpoint.patch("patch", "/channels/:id")
  .setPath(channelPath)
  .setHeaders(IfMatchHeader)
  .setPayload(PatchChannel)
  .addSuccess(One)
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = deletion("remove", "/channels/:id", ChannelId).annotate(RequiredRole, "admin")

const channels = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(create).add(patch).add(remove)

export class ChannelsApi extends channels("channels").prefix("/api").middleware(SessionAuth) {}

export class ManagedChannelsApi extends managed(channels("managedChannels"), "channels") {}
