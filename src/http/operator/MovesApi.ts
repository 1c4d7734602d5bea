/**
 * Moves of tenants between installations, for `spoke tenant move`. Both installations and the command have the same
 * version, so the requests are not a public interface.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { MoveRequest } from "../../domain/accounts/TenantMove.ts"
import {
  Conflict,
  NotFound,
  PayloadTooLarge,
  ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import { TenantId } from "../../domain/Ids.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { OperatorAuth } from "../Auth.ts"
import { bytesBody, failure, MaxBodyBytes, success } from "../Envelope.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Maximum bytes of one request. A page of rows has about 2 MiB, unless a row alone is longer. */
const maxRequestBytes = 64 * MiB

const ofTenant = Schema.Struct({ id: TenantId })
const ofOriginal = Schema.Struct({ id: TenantId, ref: ArtifactRef })

/** One request of a move to the installation. The schema of the answer depends on the request. */
const ask = HttpApiEndpoint.post("ask", "/api/operator/tenants/:id/move")
  .setPath(ofTenant)
  .setPayload(MoveRequest)
  .addSuccess(success(Schema.Unknown))
  .addError(failure(ValidationError, NotFound, Conflict, PayloadTooLarge, ServiceUnavailable))
  .annotate(MaxBodyBytes, maxRequestBytes)
  .annotate(OpenApi.Summary, "One step of a move of the tenant; used by spoke tenant move alone")

/** The bytes of an original of a tenant that is being moved from this installation. */
const original = HttpApiEndpoint.get("original", "/api/operator/tenants/:id/move/originals/:ref")
  .setPath(ofOriginal)
  .addSuccess(bytesBody)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

/** Stores an original of a tenant that is being moved to this installation. 409 when the bytes do not match `ref`. */
const putOriginal = HttpApiEndpoint.put("putOriginal", "/api/operator/tenants/:id/move/originals/:ref")
  .setPath(ofOriginal)
  .setPayload(bytesBody)
  .addSuccess(success(Schema.Struct({ ref: ArtifactRef })))
  .addError(failure(ValidationError, NotFound, Conflict, PayloadTooLarge, ServiceUnavailable))
  .annotate(MaxBodyBytes, maxRequestBytes)

export class MovesApi extends HttpApiGroup.make("moves")
  .add(ask)
  .add(original)
  .add(putOriginal)
  .middleware(OperatorAuth) {}
