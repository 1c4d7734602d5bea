/** What the visitor has written and not sent. */
export interface Draft {
  readonly text: string
  readonly files: ReadonlyArray<File>
}

/** Puts a message that was not accepted before the text of the draft. */
export const prependToDraft = (message: string, files: ReadonlyArray<File>, draft: Draft): Draft => ({
  text: draft.text === "" ? message : `${message}\n${draft.text}`,
  files: [...files, ...draft.files]
})
