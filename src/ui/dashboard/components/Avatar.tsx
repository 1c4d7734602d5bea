/** The first letter of a name on a colour derived from the name. The name itself is displayed next to it. */
import css from "./Avatar.module.css"

/** Background colours of the style sheet. */
const backgroundCount = 5

const groundOf = (name: string): number =>
  [...name].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9_973, 7) % backgroundCount

export const Avatar = ({ name }: { readonly name: string }) => {
  const [first = "·"] = name.match(/[\p{L}\p{N}]/u) ?? []
  return (
    <span aria-hidden className={`${css["avatar"]} ${css[`ground${groundOf(name)}`]}`}>
      {first}
    </span>
  )
}
