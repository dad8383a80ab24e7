# idea: commits, gc --aggressive, fsck, clone
# needs: git=git
export GIT_AUTHOR_DATE='1 Jan 2020 00:00 +0000' GIT_COMMITTER_DATE='1 Jan 2020 00:00 +0000'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1
git init -q -b main repo
cd repo
git config gc.auto 0
git config pack.threads 1
cp -rL ../tree .
for i in $(seq 25); do
    head -n $((4000 * i)) ../words.txt > words.txt
    sed -i "s/a$i/b$i/; ${i}d" words.txt
    head -c $((50000 * i)) ../data.bin > data
    git add -A
    git commit -q -m "number $i"
done
git gc -q --aggressive
git fsck --full --strict
git log --stat --format=%H | cksum
git verify-pack -s .git/objects/pack/*.idx
git diff HEAD~13 | cksum
git blame words.txt | cksum
cd ..
git clone -q file://$PWD/repo other
cd other
git fsck --full
git rev-parse HEAD
git archive HEAD | sha256sum
cd ..
rm -rf repo/.git/index other
