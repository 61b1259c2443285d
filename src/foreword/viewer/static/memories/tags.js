// Split words with commas between into tags; one that is known and has a comma of its own stays whole.

export function tagsIn(text, known) {
  const parts = partsOf(text);
  const whole = known
    .filter((each) => each.includes(","))
    .map((tag) => ({ tag, its: partsOf(tag) }))
    .sort((one, other) => other.its.length - one.its.length);
  const found = [];
  let at = 0;
  while (at < parts.length) {
    const begins = ({ tag, its }) => !found.includes(tag) && its.every((each, on) => each === parts[at + on]);
    const { tag, its } = whole.find(begins) ?? { tag: parts[at], its: [parts[at]] };
    found.push(tag);
    at += its.length;
  }
  return found.filter(Boolean);
}

const partsOf = (text) => text.split(",").map((each) => each.trim());
