/** Test cases of an agent. */
import type {
  ImportTestCases,
  TestCase as Declared,
  TestCaseFields,
  TestCaseFromRun
} from "../../../domain/agents/TestCase.ts"
import type { TestCasePage } from "../../../http/hosted/agents/TestCasesApi.ts"
import { call, pagesOf } from "./Client.ts"

export type TestCase = typeof Declared.Encoded
export type TestCaseInput = typeof TestCaseFields.Encoded
type CaseFile = typeof ImportTestCases.Encoded

export const testCases = (agentId: string) =>
  pagesOf<typeof TestCasePage.Encoded>(["agents", agentId, "cases"], `/api/agents/${agentId}/cases`, {
    limit: 50
  })

export const createTestCase = (agentId: string, body: TestCaseInput) =>
  call<unknown, TestCaseInput>("POST", `/api/agents/${agentId}/cases`, { body })

export const testCaseFromRun = (agentId: string, runId: string) =>
  call<unknown, typeof TestCaseFromRun.Encoded>("POST", `/api/agents/${agentId}/cases/from-run`, {
    body: { runId }
  })

export const importTestCases = (agentId: string, body: CaseFile) =>
  call<{ readonly imported: number }, CaseFile>("POST", `/api/agents/${agentId}/cases/import`, { body })

export const updateTestCase = (id: string, body: TestCaseInput) =>
  call<unknown, TestCaseInput>("PUT", `/api/cases/${id}`, { body })

export const deleteTestCase = (id: string) => call("DELETE", `/api/cases/${id}`)

/** The address of the file with all cases. */
export const exportAddress = (agentId: string) => `/api/agents/${agentId}/cases/export`
