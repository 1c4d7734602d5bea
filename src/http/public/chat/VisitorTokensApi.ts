/** Tokens that a server issues to its visitors. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { VisitorToken, VisitorTokenRequest } from "../../../domain/chat/VisitorToken.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { success, UpdatedAt } from "../../Envelope.ts"

const create = HttpApiEndpoint.post("create", "/v1/visitor-tokens")
  .setPayload(VisitorTokenRequest)
  .addSuccess(success(VisitorToken), { status: 201 })
  .annotate(OpenApi.Summary, "Make a token that says who a visitor is and what they may read")

export const VisitorTokensApi = HttpApiGroup.make("visitorTokens")
  .add(create)
  .annotate(UpdatedAt, "2026-11-23T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "visitor_tokens")
  .middleware(AgentKeyAuth)
