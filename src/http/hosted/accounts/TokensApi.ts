/** Access tokens for the management interface, for the dashboard's admins. A token cannot create another one. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { AccessToken, CreateToken } from "../../../domain/accounts/AccessToken.ts"
import { ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { TokenId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

export const TokenPage = Schema.Struct({ tokens: Schema.Array(AccessToken), nextCursor })
/** The only response with the secret. */
export const MadeToken = Schema.Struct({ token: AccessToken, secret: Schema.Redacted(Schema.String) })

/** All tokens of the tenant, newest first. */
const list = HttpApiEndpoint.get("list", "/api/tokens")
  .setUrlParams(pageParams)
  .addSuccess(success(TokenPage))
  .addError(failure(ValidationError))

/** A token acts for its author, with at most the author's current role. */
const create = HttpApiEndpoint.post("create", "/api/tokens")
  .setPayload(CreateToken)
  .addSuccess(success(MadeToken), { status: 201 })
  .addError(failure(ValidationError, ServiceUnavailable))

/** Sets the token to `REVOKED`, permanently. */
const remove = deletion("remove", "/api/tokens/:id", TokenId)

export class TokensApi extends HttpApiGroup.make("tokens")
  .add(list)
  .add(create)
  .add(remove)
  .middleware(SessionAuth)
  .annotateEndpoints(RequiredRole, "admin") {}
