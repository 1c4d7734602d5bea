/** API keys, for the dashboard's admins. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { ApiKey, CreateAgentKey, CreateOrgKey, PatchKey } from "../../../domain/accounts/ApiKey.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId, KeyId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

const One = success(Schema.Struct({ key: ApiKey }))
export const KeyPage = Schema.Struct({ keys: Schema.Array(ApiKey), nextCursor })
/** The only response with the secret. */
export const MadeKey = Schema.Struct({ key: ApiKey, secret: Schema.Redacted(Schema.String) })
const agentPath = Schema.Struct({ id: AgentId })
const keyPath = Schema.Struct({ id: KeyId })

const list = HttpApiEndpoint.get("list", "/agents/:id/keys")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(KeyPage))
  .addError(failure(ValidationError, NotFound))

const create = HttpApiEndpoint.post("create", "/agents/:id/keys")
  .setPath(agentPath)
  .setPayload(CreateAgentKey)
  .addSuccess(success(MadeKey), { status: 201 })
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

const createOrg = HttpApiEndpoint.post("createOrg", "/keys")
  .setPayload(CreateOrgKey)
  .addSuccess(success(MadeKey), { status: 201 })
  .addError(failure(ValidationError, ServiceUnavailable))

/** Omitted fields stay; `null` clears. A revoked key is 409. `If-Match` has the version that the change is based on. */
const patch = HttpApiEndpoint.patch("patch", "/keys/:id")
  .setPath(keyPath)
  .setHeaders(IfMatchHeader)
  .setPayload(PatchKey)
  .addSuccess(One)
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))

/** Sets the key to `REVOKED`, permanently. */
const remove = deletion("remove", "/keys/:id", KeyId)

const keys = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id)
    .add(list)
    .add(create)
    .add(createOrg)
    .add(patch)
    .add(remove)
    .annotateEndpoints(RequiredRole, "admin")

export class KeysApi extends keys("keys").prefix("/api").middleware(SessionAuth) {}

export class ManagedKeysApi extends managed(keys("managedKeys"), "keys") {}
