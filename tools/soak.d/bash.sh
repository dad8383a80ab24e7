# idea: arrays, patterns, here-documents
declare -A count
text=
while read -r word rest; do
    count[$word]=$((${count[$word]:-0} + 1))
    text+="${rest:0:40}|"
done < <(head -n 20000 words.txt)
for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort | cksum
echo "${#text} ${text//a/[A]}" | cksum
printf '%-20s|%9s|\n' {a..z}{1..99} | cksum
