/** Validation issues of a form, field by field. */
import type { Issue } from "../../../domain/Errors.ts"
import { ApiError } from "../api/Client.ts"
import { useIssueWords } from "../text/useIssueWords.ts"

const isIssue = (value: unknown): value is Issue =>
  typeof value === "object" &&
  value !== null &&
  "path" in value &&
  Array.isArray(value.path) &&
  "message" in value &&
  typeof value.message === "string"

/** The issues that a refusal names; none for any other. */
export const issuesOf = (problem: unknown): ReadonlyArray<Issue> => {
  const issues = problem instanceof ApiError ? problem.details["issues"] : undefined
  return Array.isArray(issues) ? issues.filter(isIssue) : []
}

const isAt = (field: string, { path }: Issue) => {
  const place = path.join(".")
  return place === field || place.startsWith(`${field}.`)
}

/**
 * `errorOf` is what stands at a field, which is named by its place in what is sent, such as `retrieval.topK`. `general` is
 * what belongs to none of `fields`; null where there is nothing else to say.
 */
export const useIssues = <F extends string>(problem: unknown, fields: ReadonlyArray<F>) => {
  const wordsOf = useIssueWords()
  const issues = issuesOf(problem)
  const isTold = issues.length > 0 && issues.every((issue) => fields.some((field) => isAt(field, issue)))
  return {
    errorOf: (field: F): string | undefined => {
      const issue = issues.find((one) => isAt(field, one))
      return issue === undefined ? undefined : wordsOf(issue.message)
    },
    general: isTold ? null : problem
  }
}
