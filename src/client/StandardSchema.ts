/** Schemas of zod, valibot and others, in the form of Standard Schema; see https://standardschema.dev. */

interface StandardIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: ReadonlyArray<StandardIssue> }

/** The used members of Standard Schema. */
export interface StandardInput<Output> {
  readonly "~standard": {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: string }) => Readonly<Record<string, unknown>> }
      | undefined
  }
}

/** An issue with its path, in words. */
export const issueText = ({ message, path = [] }: StandardIssue): string => {
  const fieldPath = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".")
  return fieldPath === "" ? message : `${fieldPath}: ${message}`
}

/** The version of JSON Schema to which schemas are converted. */
export const target = "draft-2020-12"
