/** The first letter of a name, on a colour that is derived from the name. Decorative: the name is shown beside it. */
import css from "./Avatar.module.css"

/** Number of background colours in the style sheet. */
const backgroundCount = 5

const backgroundOf = (name: string): number =>
  [...name].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9_973, 7) % backgroundCount

export const Avatar = ({ name }: { readonly name: string }) => {
  const [first = "·"] = name.match(/[\p{L}\p{N}]/u) ?? []
  return (
    <span aria-hidden className={`${css["avatar"]} ${css[`ground${backgroundOf(name)}`]}`}>
      {first}
    </span>
  )
}
