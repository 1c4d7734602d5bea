/** What the visitor has written and not sent. */
export interface Draft {
  readonly text: string
  readonly files: ReadonlyArray<File>
}

/** The draft behind a message that was not accepted. */
export const withReturned = (message: string, files: ReadonlyArray<File>, draft: Draft): Draft => ({
  text: draft.text === "" ? message : `${message}\n${draft.text}`,
  files: [...files, ...draft.files]
})
