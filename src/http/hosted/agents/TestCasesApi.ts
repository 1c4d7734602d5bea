/** The test cases of an agent, for the dashboard and for programs: viewers read, admins write. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  ImportTestCases,
  TestCase,
  TestCaseFields,
  TestCaseFromRun,
  TestCaseId
} from "../../../domain/agents/TestCase.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success, textBody } from "../../Envelope.ts"

const One = success(Schema.Struct({ case: TestCase }))
export const TestCasePage = Schema.Struct({ cases: Schema.Array(TestCase), nextCursor })
const Imported = success(Schema.Struct({ imported: Schema.Int }))
const Lines = textBody("application/x-ndjson").annotations({
  description: "One case a line, as `spoke eval` reads it."
})
const agentPath = Schema.Struct({ id: AgentId })
const casePath = Schema.Struct({ id: TestCaseId })

/** Oldest first. */
const list = HttpApiEndpoint.get("list", "/agents/:id/cases")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(TestCasePage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const exported = HttpApiEndpoint.get("export", "/agents/:id/cases/export")
  .setPath(agentPath)
  .addSuccess(Lines)
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const create = HttpApiEndpoint.post("create", "/agents/:id/cases")
  .setPath(agentPath)
  .setPayload(TestCaseFields)
  .addSuccess(One, { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Makes a case from the question of an ended turn, with the sources that its reply cites. */
const fromRun = HttpApiEndpoint.post("fromRun", "/agents/:id/cases/from-run")
  .setPath(agentPath)
  .setPayload(TestCaseFromRun)
  .addSuccess(One, { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Imports all cases of a file, or none. */
const importFile = HttpApiEndpoint.post("import", "/agents/:id/cases/import")
  .setPath(agentPath)
  .setPayload(ImportTestCases)
  .addSuccess(Imported, { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Replaces the case. Omitted expectations are removed. */
const update = HttpApiEndpoint.put("update", "/cases/:id")
  .setPath(casePath)
  .setPayload(TestCaseFields)
  .addSuccess(One)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = deletion("remove", "/cases/:id", TestCaseId).annotate(RequiredRole, "admin")

const cases = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id)
    .add(list)
    .add(exported)
    .add(create)
    .add(fromRun)
    .add(importFile)
    .add(update)
    .add(remove)

export class TestCasesApi extends cases("testCases").prefix("/api").middleware(SessionAuth) {}

export class ManagedTestCasesApi extends managed(cases("managedTestCases"), "agents") {}
