/** What browsers do differently when people type and paste. */

/** True while an input method composes text. Safari reports the key that ends this as 229 instead. */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229

/** Pasted files. Spreadsheets and word processors also offer a picture of the text that they paste. */
export const pastedFiles = (data: DataTransfer | null): ReadonlyArray<File> =>
  data === null || (data.types.includes("text/plain") && data.types.includes("text/html"))
    ? []
    : [...data.files]
