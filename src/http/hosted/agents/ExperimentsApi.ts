/** Experiments with an agent, and the thresholds that a version must reach to be published. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  Experiment,
  ExperimentId,
  ExperimentReport,
  ExperimentResult,
  PublishThreshold,
  StartExperiment
} from "../../../domain/agents/Experiment.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

export const OneExperiment = Schema.Struct({ experiment: Experiment })
export const ReportedExperiment = Schema.Struct({ experiment: Experiment, report: ExperimentReport })
export const ExperimentPage = Schema.Struct({ experiments: Schema.Array(Experiment), nextCursor })
export const ExperimentResultPage = Schema.Struct({ results: Schema.Array(ExperimentResult), nextCursor })
export const OneThreshold = Schema.Struct({ threshold: PublishThreshold })
const agentPath = Schema.Struct({ id: AgentId })
const experimentPath = Schema.Struct({ id: ExperimentId })

/** Responds at once. A job runs the questions. Each stored turn gets an audit entry, as for a replay. */
const start = HttpApiEndpoint.post("start", "/agents/:id/experiments")
  .setPath(agentPath)
  .setPayload(StartExperiment)
  .addSuccess(success(OneExperiment), { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Newest first. */
const list = HttpApiEndpoint.get("list", "/agents/:id/experiments")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(ExperimentPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

const get = HttpApiEndpoint.get("get", "/experiments/:id")
  .setPath(experimentPath)
  .addSuccess(success(ReportedExperiment))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

/** In the order of the cases, each with the baseline's result. */
const results = HttpApiEndpoint.get("results", "/experiments/:id/results")
  .setPath(experimentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(ExperimentResultPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

const cancel = HttpApiEndpoint.post("cancel", "/experiments/:id/cancel")
  .setPath(experimentPath)
  .addSuccess(success(OneExperiment))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = deletion("remove", "/experiments/:id", ExperimentId).annotate(RequiredRole, "admin")

const threshold = HttpApiEndpoint.get("threshold", "/agents/:id/threshold")
  .setPath(agentPath)
  .addSuccess(success(OneThreshold))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const setThreshold = HttpApiEndpoint.put("setThreshold", "/agents/:id/threshold")
  .setPath(agentPath)
  .setPayload(PublishThreshold)
  .addSuccess(success(OneThreshold))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const experiments = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id)
    .add(start)
    .add(list)
    .add(get)
    .add(results)
    .add(cancel)
    .add(remove)
    .add(threshold)
    .add(setThreshold)

export class ExperimentsApi extends experiments("experiments").prefix("/api").middleware(SessionAuth) {}

export class ManagedExperimentsApi extends managed(experiments("managedExperiments"), "agents") {}
