/** Corrections of wrong answers: draft, preview, approve. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  Correction,
  CorrectionId,
  CreateCorrection,
  PatchCorrection,
  PreviewCorrection
} from "../../../domain/agents/Correction.ts"
import {
  Conflict,
  LimitExceeded,
  NotFound,
  ServiceUnavailable,
  TurnLimitExceeded,
  ValidationError
} from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"
import { forced } from "./AgentsApi.ts"

const One = Schema.Struct({ correction: Correction })
const agentPath = Schema.Struct({ id: AgentId })
const path = Schema.Struct({ id: CorrectionId })

/** Newest first. */
const list = HttpApiEndpoint.get("list", "/agents/:id/corrections")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(Schema.Struct({ corrections: Schema.Array(Correction), nextCursor })))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

/** Creates a draft. It is not used for answers. */
const create = HttpApiEndpoint.post("create", "/agents/:id/corrections")
  .setPath(agentPath)
  .setPayload(CreateCorrection)
  .addSuccess(success(One), { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, TurnLimitExceeded, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const get = HttpApiEndpoint.get("get", "/corrections/:id")
  .setPath(path)
  .addSuccess(success(One))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

const update = HttpApiEndpoint.patch("update", "/corrections/:id")
  .setPath(path)
  .setPayload(PatchCorrection)
  .addSuccess(success(One))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Responds at once. A job replays past questions with the draft, as an experiment. */
const preview = HttpApiEndpoint.post("preview", "/corrections/:id/preview")
  .setPath(path)
  .setPayload(PreviewCorrection)
  .addSuccess(success(One))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Makes the draft a curated answer of the agent. */
const approve = HttpApiEndpoint.post("approve", "/corrections/:id/approve")
  .setPath(path)
  .setUrlParams(forced)
  .addSuccess(success(One))
  .addError(failure(ValidationError, NotFound, Conflict, LimitExceeded, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = deletion("remove", "/corrections/:id", CorrectionId).annotate(RequiredRole, "admin")

const corrections = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(create).add(get).add(update).add(preview).add(approve).add(remove)

export class CorrectionsApi extends corrections("corrections").prefix("/api").middleware(SessionAuth) {}

export class ManagedCorrectionsApi extends managed(corrections("managedCorrections"), "agents") {}
