/** Validation issues of a form, field by field. */
import type { Issue } from "../../../domain/Errors.ts"
import { ApiError } from "../api/Client.ts"
import { useIssueText } from "../text/useIssueText.ts"

const isIssue = (value: unknown): value is Issue =>
  typeof value === "object" &&
  value !== null &&
  "path" in value &&
  Array.isArray(value.path) &&
  "message" in value &&
  typeof value.message === "string"

/** The issues of a refusal; empty for other errors. */
export const issuesOf = (problem: unknown): ReadonlyArray<Issue> => {
  const issues = problem instanceof ApiError ? problem.details["issues"] : undefined
  return Array.isArray(issues) ? issues.filter(isIssue) : []
}

const isAtField = (field: string, { path }: Issue) => {
  const issuePath = path.join(".")
  return issuePath === field || issuePath.startsWith(`${field}.`)
}

/**
 * `fields` are paths in the body of the request, such as `retrieval.topK`. `errorOf` returns the message of a field.
 * `general` is the problem if any issue belongs to none of the fields; else null.
 */
export const useIssues = <F extends string>(problem: unknown, fields: ReadonlyArray<F>) => {
  const issueText = useIssueText()
  const issues = issuesOf(problem)
  const isShownAtFields =
    issues.length > 0 && issues.every((issue) => fields.some((field) => isAtField(field, issue)))
  // The field with the longest path, so that a problem of a link is not shown at the text with the link.
  const fieldOf = (issue: Issue) =>
    fields.filter((field) => isAtField(field, issue)).toSorted((one, other) => other.length - one.length)[0]
  return {
    errorOf: (field: F): string | undefined => {
      const issue = issues.find((one) => fieldOf(one) === field)
      return issue === undefined ? undefined : issueText(issue.message)
    },
    general: isShownAtFields ? null : problem
  }
}
