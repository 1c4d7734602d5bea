/** A number as typed: with a decimal point or a comma, as keyboards of phones offer one of them alone. */
export const numberOf = (typed: string): number => Number(typed.replace(",", "."))
