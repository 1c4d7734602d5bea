/** A number as typed: with a decimal point or a comma. Some phones offer only one of them. */
export const numberOf = (typed: string): number => Number(typed.replace(",", "."))
